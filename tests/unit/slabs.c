/* Cutting a box into pieces that follow each other in memory. */
#include "slabs.h"

#include "tap.h"
#include "tilings.h"

static void slabs(void)
{
	uint64_t state = 5;
	int wrong = 0;

	for (int trial = 0; trial < 2000; trial++) {
		struct ck_box box = {.ndim = (int)draw(&state, 5)}, piece;
		uint64_t most = 1 + draw(&state, 20), next = 0;
		struct ck_slabs walk;

		for (int d = 0; d < box.ndim; d++) {
			box.offset[d] = draw(&state, 4);
			box.extent[d] = draw(&state, 10) ? 1 + draw(&state, 5) : 0;
		}
		ck_slabs_init(&walk, &box, most);
		while (ck_slabs_next(&walk, &piece)) {
			uint64_t linear = 0, stride = 1;

			for (int d = box.ndim - 1; d >= 0; d--) {
				linear += (piece.offset[d] - box.offset[d]) * stride;
				stride *= box.extent[d];
			}
			wrong += linear != next || ck_box_volume(&piece) > most ||
				 ck_box_empty(&piece);
			next += ck_box_volume(&piece);
		}
		wrong += next != ck_box_volume(&box);
	}
	is_int(wrong, 0, "2000 random boxes: pieces follow each other, none is too large");
}

int main(void)
{
	slabs();
	return done_testing();
}
