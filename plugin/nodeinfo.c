#include "nodeinfo.h"

#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "release.h"

#define SLURMD_TIMEOUT_DEFAULT 300
/* With more nodes than this, all nodes of the cluster are loaded at once. */
#define SINGLE_MAX 8
#define PROBES_AT_ONCE 64

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

int ck_nodeinfo_step(uint32_t job_id, uint32_t step_id, bool *listed, char **nodes,
		     struct ck_error *err)
{
	job_step_info_response_msg_t *msg = NULL;

	if (load_steps(job_id, &msg))
		return ck_fail(err, CK_EIO, "step information: %s",
			       slurm_strerror(slurm_get_errno()));
	*listed = false;
	for (uint32_t i = 0; i < msg->job_step_count && !*listed; i++) {
		const job_step_info_t *step = &msg->job_steps[i];

		if (step->step_id.job_id != job_id || step->step_id.step_id != step_id)
			continue;
		*listed = true;
		*nodes = strdup(step->nodes ? step->nodes : "");
	}
	slurm_free_job_step_info_response_msg(msg);
	return 0;
}

int ck_nodeinfo_expand(const char *list, struct ck_node **out, size_t *count)
{
	ck_hostlist hosts = slurm_hostlist_create(list);
	int n = hosts ? slurm_hostlist_count(hosts) : 0;
	struct ck_node *nodes = n > 0 ? calloc((size_t)n, sizeof(*nodes)) : NULL;

	for (int i = 0; nodes && i < n; i++) {
		char *name = slurm_hostlist_shift(hosts);

		snprintf(nodes[i].name, CK_NODE_NAME, "%s", name ? name : "");
		free(name);
	}
	if (hosts)
		slurm_hostlist_destroy(hosts);
	if (!nodes)
		return CK_ENOMEM;
	*out = nodes;
	*count = (size_t)n;
	return 0;
}

static void copy(const node_info_t *info, struct ck_node *node)
{
	const char *addr = info->node_addr ? info->node_addr : info->node_hostname;

	snprintf(node->addr, sizeof(node->addr), "%s", addr ? addr : node->name);
	node->port = info->port;
	node->not_responding = info->node_state & NODE_STATE_NO_RESPOND;
	node->down = (info->node_state & NODE_STATE_BASE) == NODE_STATE_DOWN;
	node->boot = info->boot_time;
	node->slurmd = info->slurmd_start_time;
}

static void copy_all(const node_info_msg_t *msg, struct ck_node *nodes, size_t count)
{
	for (uint32_t i = 0; i < msg->record_count; i++) {
		const node_info_t *info = &msg->node_array[i];

		for (size_t k = 0; info->name && k < count; k++) {
			if (strcmp(info->name, nodes[k].name) == 0)
				copy(info, &nodes[k]);
		}
	}
}

int ck_nodeinfo_load(struct ck_node *nodes, size_t count, struct ck_error *err)
{
	bool single = count <= SINGLE_MAX;

	for (size_t i = 0; i < (single ? count : 1); i++) {
		node_info_msg_t *msg = NULL;

		if (single ? slurm_load_node_single(&msg, nodes[i].name, SHOW_ALL)
			   : slurm_load_node(0, &msg, SHOW_ALL))
			return ck_fail(err, CK_EIO, "node information: %s",
				       slurm_strerror(slurm_get_errno()));
		copy_all(msg, nodes, count);
		slurm_free_node_info_msg(msg);
	}
	return 0;
}

uint32_t ck_nodeinfo_slurmd_timeout(void)
{
	slurm_conf_t *conf = NULL;
	uint32_t seconds;

	if (slurm_load_ctl_conf(0, &conf))
		return SLURMD_TIMEOUT_DEFAULT;
	seconds = conf->slurmd_timeout;
	slurm_free_ctl_conf(conf);
	return seconds;
}

/* A connection that is being made, or -1. */
static int begin_connect(const struct ck_node *node)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	char port[8];
	int fd = -1;

	snprintf(port, sizeof(port), "%u", node->port);
	if (getaddrinfo(node->addr, port, &hints, &found))
		return -1;
	for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) && errno != EINPROGRESS) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(found);
	return fd;
}

/* What poll() has found for one of them: its descriptor again, or -1 when all is known. */
static int advance(struct pollfd *poll, struct ck_node *node)
{
	int error = 0;
	socklen_t len = sizeof(error);
	char byte;

	if (poll->events == POLLOUT) {
		if (getsockopt(poll->fd, SOL_SOCKET, SO_ERROR, &error, &len) || error)
			return -1;
		shutdown(poll->fd, SHUT_WR);
		poll->events = POLLIN;
		return poll->fd;
	}
	/* Bytes, the end or a reset: somebody is there. */
	node->answers = true;
	return recv(poll->fd, &byte, 1, 0) < 0 && errno == EAGAIN ? poll->fd : -1;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void probe_some(struct ck_node *nodes, size_t count)
{
	struct pollfd polls[PROBES_AT_ONCE];
	int64_t until = now_ms() + CK_PROBE_MS, left;

	for (size_t i = 0; i < count; i++) {
		nodes[i].answers = false;
		polls[i] = (struct pollfd){.fd = begin_connect(&nodes[i]), .events = POLLOUT};
	}
	while ((left = until - now_ms()) > 0) {
		size_t open = 0;

		for (size_t i = 0; i < count; i++)
			open += polls[i].fd >= 0;
		if (open == 0 || (poll(polls, count, (int)left) < 0 && errno != EINTR))
			break;
		for (size_t i = 0; i < count; i++) {
			int fd = polls[i].fd;

			if (fd < 0 || !polls[i].revents)
				continue;
			polls[i].fd = advance(&polls[i], &nodes[i]);
			if (polls[i].fd < 0)
				close(fd);
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (polls[i].fd >= 0)
			close(polls[i].fd);
	}
}

void ck_nodeinfo_probe(struct ck_node *nodes, size_t count)
{
	for (size_t i = 0; i < count; i += PROBES_AT_ONCE)
		probe_some(nodes + i, count - i < PROBES_AT_ONCE ? count - i : PROBES_AT_ONCE);
}
