/* The comment of a job that we hold: the user's own, and behind it ours. Pure. */
#ifndef CK_COMMENT_H
#define CK_COMMENT_H

/* slurmctld refuses a longer one, the NUL included. */
#define CK_COMMENT_BYTES 1024

/*
 * "<old>; ckpt: <reason>", or "ckpt: <reason>". What we have put behind an earlier one is replaced. The
 * reason is cut, or left out, where there is no room: the user's words are kept.
 */
void ck_comment_hold(const char *old, const char *reason, char out[static CK_COMMENT_BYTES]);

#endif
