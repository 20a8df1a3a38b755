/*
 * Random numbers: one 64-bit mixing function (that of splitmix64, Steele et al. 2014) serves as a
 * hash of counters and, over a counter that is its whole state, as a generator.
 */
#ifndef TRAIN_RNG_H
#define TRAIN_RNG_H

#include <ckpt.h>
#include <stdint.h>
#include <string.h>

struct rng {
	uint64_t state;
};

#define RNG_INCREMENT UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t rng_mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* A value that depends on both numbers only: the same on every rank, in every order of asking. */
static inline uint64_t rng_hash(uint64_t seed, uint64_t counter)
{
	return rng_mix(rng_mix(seed + RNG_INCREMENT) + (counter + 1) * RNG_INCREMENT);
}

/* Generators of different streams (ranks) start far apart. */
static inline struct rng rng_start(uint64_t seed, uint64_t stream)
{
	return (struct rng){.state = rng_hash(~seed, stream)};
}

/* The next number of [0, 1), in steps of 2^-24. */
static inline float rng_uniform(struct rng *rng)
{
	rng->state += RNG_INCREMENT;
	return (float)(rng_mix(rng->state) >> 40) * 0x1p-24f;
}

/* The state as bytes, in the form that struct ckpt_rank_callbacks asks for. */
static inline size_t rng_size(void *rng)
{
	(void)rng;
	return sizeof(struct rng);
}

static inline int rng_get(void *rng, void *dst, size_t bytes)
{
	memcpy(dst, rng, bytes);
	return 0;
}

static inline int rng_set(void *rng, const void *src, size_t bytes)
{
	if (bytes != sizeof(struct rng))
		return -1;
	memcpy(rng, src, bytes);
	return 0;
}

/*
 * Another number of ranks: new streams, as far apart as at a start (`rng` is as rng_start made it), that
 * depend on where all of the old ones were and so repeat none of their numbers.
 */
static inline int rng_reassign(void *rng, uint32_t old_world, const struct ckpt_rank_value *values)
{
	struct rng *own = rng, old;

	for (uint32_t r = 0; r < old_world; r++) {
		if (rng_set(&old, values[r].data, values[r].bytes))
			return -1;
		own->state = rng_hash(own->state, old.state);
	}
	return 0;
}

#endif
