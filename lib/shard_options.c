#include <errno.h>

#include "shard_impl.h"

struct ck_shard_options ck_shard_options_or_default(const struct ck_shard_options *options)
{
	struct ck_shard_options chosen = {.direct = true};

	if (options)
		chosen = *options;
	if (chosen.sha == CK_SHA_NONE)
		chosen.sha = CK_SHA_BEST;
	return chosen;
}

void ck_shard_note(const struct ck_shard_options *options, unsigned note)
{
	if (options->notes)
		*options->notes |= note;
}

void ck_shard_note_direct(const struct ck_shard_options *options, int errnum)
{
	bool refused = errnum == EINVAL || errnum == EOPNOTSUPP;

	ck_shard_note(options, refused ? CK_NOTE_BUFFERED : CK_NOTE_NO_DIRECT);
}
