/* The plugin's lines for the user, from a process that may be about to end. */
#ifndef CK_SAY_H
#define CK_SAY_H

/* "ckpt: <line>\n" on standard error, what is not printable escaped. With write(): stdio and Slurm's
 * log may be closed already. */
void ck_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
