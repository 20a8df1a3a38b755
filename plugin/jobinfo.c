#include "jobinfo.h"

#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "comment.h"
#include "release.h"

#if VERSION_AT_LEAST(25, 11)
#define JOB_ID(info) ((info)->step_id.job_id)
#else
#define JOB_ID(info) ((info)->job_id)
#endif

/* From here on slurm_errno.h has what may happen on the way: sockets, authentication. */
#define TRANSPORT_ERRORS_FROM 5000

/* A job without a limit ends, for Slurm, a year from its start. */
#define NO_LIMIT_SECONDS (300 * 86400)

static enum ck_job_state state_of(uint32_t job_state)
{
	switch (job_state & JOB_STATE_BASE) {
	case JOB_RUNNING:
	case JOB_SUSPENDED:
		return CK_JOB_RUNNING;
	case JOB_TIMEOUT:
		return CK_JOB_TIMEOUT;
	case JOB_CANCELLED:
		return CK_JOB_CANCELLED;
	case JOB_PREEMPTED:
		return CK_JOB_PREEMPTED;
	case JOB_PENDING:
		return CK_JOB_PENDING;
	default:
		return CK_JOB_ENDED;
	}
}

static void copy(const job_info_t *info, struct ck_jobinfo *out)
{
	bool in_array = info->array_job_id != 0 && info->array_task_id != NO_VAL;
	bool limited = info->time_limit != INFINITE && info->end_time != 0 &&
		       info->end_time - info->start_time < NO_LIMIT_SECONDS;

	*out = (struct ck_jobinfo){
		.job_id = JOB_ID(info),
		.array_job = in_array ? info->array_job_id : 0,
		.array_task = in_array ? info->array_task_id : CK_NO_TASK,
		.het_job = info->het_job_id,
		.restarts = info->restart_cnt,
		.start = info->start_time,
		.submit = info->submit_time,
		.end = limited ? info->end_time : 0,
		.preempted = info->preempt_time,
		.state = state_of(info->job_state),
		.completing = info->job_state & JOB_COMPLETING,
		.batch = info->batch_flag != 0,
		.may_requeue = info->requeue != 0,
	};
	snprintf(out->name, sizeof(out->name), "%s", info->name ? info->name : "");
	snprintf(out->comment, sizeof(out->comment), "%s", info->comment ? info->comment : "");
	snprintf(out->partition, sizeof(out->partition), "%s",
		 info->partition ? info->partition : "");
}

static int fail(const char *what, int errnum, struct ck_error *err)
{
	return ck_fail(err, errnum == ESLURM_INVALID_JOB_ID ? CK_ENOENT : CK_EIO, "%s: %s", what,
		       slurm_strerror(errnum));
}

static int load_job(uint32_t job_id, job_info_msg_t **msg)
{
#if VERSION_AT_LEAST(26, 5)
	slurm_step_id_t wanted = SLURM_STEP_ID_INITIALIZER;

	wanted.job_id = job_id;
	return slurm_load_job(msg, wanted, SHOW_ALL);
#else
	return slurm_load_job(msg, job_id, SHOW_ALL);
#endif
}

int ck_jobinfo_load(uint32_t job_id, struct ck_jobinfo *out, struct ck_error *err)
{
	job_info_msg_t *msg = NULL;
	int rc = CK_ENOENT;

	if (load_job(job_id, &msg))
		return fail("job information", slurm_get_errno(), err);
	/* The id of an array, which one element has too, brings all elements. */
	for (uint32_t i = 0; rc && i < msg->record_count; i++) {
		if (JOB_ID(&msg->job_array[i]) == job_id) {
			copy(&msg->job_array[i], out);
			rc = 0;
		}
	}
	slurm_free_job_info_msg(msg);
	return rc ? ck_fail(err, rc, "job information: no job %u", job_id) : 0;
}

int ck_jobinfo_cluster(char out[static CK_SHORT_TEXT], struct ck_error *err)
{
	slurm_conf_t *conf = NULL;
	const char *name;

	if (slurm_load_ctl_conf(0, &conf))
		return fail("configuration", slurm_get_errno(), err);
	name = conf->cluster_name ? conf->cluster_name : "";
	snprintf(out, CK_SHORT_TEXT, "%s", name);
	slurm_free_ctl_conf(conf);
	return *out ? 0 : ck_fail(err, CK_EIO, "configuration: the cluster has no name");
}

bool ck_jobinfo_hides_others(void)
{
	slurm_conf_t *conf = NULL;
	bool hides;

	if (slurm_load_ctl_conf(0, &conf))
		return true;
	hides = conf->private_data & PRIVATE_DATA_JOBS;
	slurm_free_ctl_conf(conf);
	return hides;
}

/* An array element by its own name: the id of the last one names the whole array. */
static void print_id(const struct ck_jobinfo *job, char id[static 32])
{
	if (job->array_task != CK_NO_TASK)
		snprintf(id, 32, "%u_%u", job->array_job, job->array_task);
	else
		snprintf(id, 32, "%u", job->het_job ? job->het_job : job->job_id);
}

/* slurmctld's own errors, but "not yet in charge"; the others are of the way to it. */
static bool is_refusal(int errnum)
{
	return errnum >= ESLURM_INVALID_PARTITION_NAME && errnum < TRANSPORT_ERRORS_FROM &&
	       errnum != ESLURM_IN_STANDBY_MODE;
}

/* `flags`: of scontrol's requeue and requeuehold. */
static int requeue(const struct ck_jobinfo *job, uint32_t flags, struct ck_error *err)
{
	job_array_resp_msg_t *resp = NULL;
	int errnum = 0;
	char id[32];

	print_id(job, id);
	if (slurm_requeue2(id, flags, &resp))
		errnum = slurm_get_errno();
	for (uint32_t i = 0; resp && !errnum && i < resp->job_array_count; i++)
		errnum = (int)resp->error_code[i];
	if (resp)
		slurm_free_job_array_resp(resp);
	if (errnum == 0 || errnum == ESLURM_JOB_PENDING)
		return 0;
	return ck_fail(err, is_refusal(errnum) ? CK_EREFUSED : CK_EIO, "%s",
		       slurm_strerror(errnum));
}

/* scontrol's "requeue incomplete": slurmctld then passes over a job that was cancelled meanwhile. */
static uint32_t only_if_running(const struct ck_jobinfo *job)
{
	return job->state == CK_JOB_RUNNING ? JOB_RUNNING : 0;
}

int ck_jobinfo_requeue(const struct ck_jobinfo *job, struct ck_error *err)
{
	return requeue(job, only_if_running(job), err);
}

static int update_job(const struct ck_jobinfo *job, job_desc_msg_t *update, struct ck_error *err)
{
	job_array_resp_msg_t *resp = NULL;
	int errnum = 0;
	char id[32];

	print_id(job, id);
	update->job_id_str = id;
	if (slurm_update_job2(update, &resp))
		errnum = slurm_get_errno();
	for (uint32_t i = 0; resp && !errnum && i < resp->job_array_count; i++)
		errnum = (int)resp->error_code[i];
	if (resp)
		slurm_free_job_array_resp(resp);
	return errnum ? ck_fail(err, CK_EIO, "%s", slurm_strerror(errnum)) : 0;
}

/* A comment that cannot be set is no reason to let the job run on in circles. */
static void set_comment(const struct ck_jobinfo *job, const char *text)
{
	job_desc_msg_t update;
	char comment[CK_COMMENT_BYTES];

	ck_comment_hold(job->comment, text, comment);
	slurm_init_job_desc_msg(&update);
	update.comment = comment;
	update_job(job, &update, NULL);
}

int ck_jobinfo_forbid_requeue(const struct ck_jobinfo *job, struct ck_error *err)
{
	job_desc_msg_t update;

	slurm_init_job_desc_msg(&update);
	update.requeue = 0;
	return update_job(job, &update, err);
}

int ck_jobinfo_requeue_held(const struct ck_jobinfo *job, const char *reason, struct ck_error *err)
{
	set_comment(job, reason);
	return requeue(job, only_if_running(job) | JOB_REQUEUE_HOLD, err);
}

int ck_jobinfo_end(const struct ck_jobinfo *job, int exit_code, struct ck_error *err)
{
	int rc;
#if VERSION_AT_LEAST(25, 11)
	slurm_step_id_t id = SLURM_STEP_ID_INITIALIZER;

	id.job_id = job->job_id;
	rc = slurm_complete_job(&id, (uint32_t)exit_code << 8);
#else
	rc = slurm_complete_job(job->job_id, (uint32_t)exit_code << 8);
#endif
	if (rc && slurm_get_errno() != ESLURM_ALREADY_DONE)
		return ck_fail(err, is_refusal(slurm_get_errno()) ? CK_EREFUSED : CK_EIO, "%s",
			       slurm_strerror(slurm_get_errno()));
	return 0;
}

uint32_t ck_jobinfo_over_seconds(const struct ck_jobinfo *job)
{
	partition_info_msg_t *msg = NULL;
	slurm_conf_t *conf = NULL;
	uint16_t minutes = 0, own = NO_VAL16;

	if (slurm_load_ctl_conf(0, &conf) == 0) {
		minutes = conf->over_time_limit;
		slurm_free_ctl_conf(conf);
	}
	if (slurm_load_partitions(0, &msg, SHOW_ALL) == 0) {
		for (uint32_t i = 0; i < msg->record_count; i++) {
			if (strcmp(msg->partition_array[i].name, job->partition) == 0)
				own = msg->partition_array[i].over_time_limit;
		}
		slurm_free_partition_info_msg(msg);
	}
	minutes = own == NO_VAL16 ? minutes : own;
	return minutes == INFINITE16 ? CK_OVER_UNLIMITED : minutes * 60U;
}

#if VERSION_AT_LEAST(24, 5)
/* The partition's own mode, NO_VAL16 when it has none; -1: no answer. */
static int partition_preempt_mode(const char *name)
{
	partition_info_msg_t *msg = NULL;
	int mode = NO_VAL16;

	if (slurm_load_partitions(0, &msg, SHOW_ALL))
		return -1;
	for (uint32_t i = 0; i < msg->record_count; i++) {
		if (strcmp(msg->partition_array[i].name, name) == 0)
			mode = msg->partition_array[i].preempt_mode;
	}
	slurm_free_partition_info_msg(msg);
	return mode;
}

/* A QOS, whose mode only the accounting database tells, is a doubt. */
int ck_jobinfo_grace_requeues(const struct ck_jobinfo *job)
{
	slurm_conf_t *conf = NULL;
	bool by_partition;
	int mode;

	if (!job->preempted || !job->may_requeue)
		return 0;
	mode = partition_preempt_mode(job->partition);
	if (mode < 0 || slurm_load_ctl_conf(0, &conf))
		return CK_EIO;
	by_partition = conf->preempt_type && strstr(conf->preempt_type, "partition_prio");
	if (mode == NO_VAL16)
		mode = conf->preempt_mode;
	slurm_free_ctl_conf(conf);
	return by_partition && (mode & PREEMPT_MODE_REQUEUE);
}
#else
int ck_jobinfo_grace_requeues(const struct ck_jobinfo *job)
{
	(void)job;
	return 0;
}
#endif

int ck_jobinfo_signal_batch(const struct ck_jobinfo *job, int signal, struct ck_error *err)
{
	char id[32];

	snprintf(id, sizeof(id), "%u", job->job_id);
	if (slurm_kill_job2(id, (uint16_t)signal, KILL_JOB_BATCH, NULL))
		return fail("signal to the batch script", slurm_get_errno(), err);
	return 0;
}

static int load_steps(uint32_t job_id, job_step_info_response_msg_t **msg)
{
#if VERSION_AT_LEAST(25, 11)
	slurm_step_id_t wanted = SLURM_STEP_ID_INITIALIZER;

	wanted.job_id = job_id;
	return slurm_get_job_steps(&wanted, msg, SHOW_ALL);
#else
	return slurm_get_job_steps(0, job_id, NO_VAL, msg, SHOW_ALL);
#endif
}

int ck_jobinfo_steps(uint32_t job_id, uint32_t steps[static CK_STEPS_MAX], size_t *count,
		     struct ck_error *err)
{
	job_step_info_response_msg_t *msg = NULL;

	if (load_steps(job_id, &msg))
		return fail("step information", slurm_get_errno(), err);
	*count = 0;
	for (uint32_t i = 0; i < msg->job_step_count && *count < CK_STEPS_MAX; i++) {
		const slurm_step_id_t *id = &msg->job_steps[i].step_id;

		if (id->job_id == job_id && id->step_id < SLURM_MAX_NORMAL_STEP_ID)
			steps[(*count)++] = id->step_id;
	}
	slurm_free_job_step_info_response_msg(msg);
	return 0;
}
