/*
 * A byte-level language model: the last `context` bytes are looked up in an embedding table, one
 * hidden layer (rectified, with dropout) and a softmax over 256 bytes follow. No MPI, no file.
 *
 * All parameters are one flat array: embedding [256][embed], w1 [context * embed][hidden],
 * b1 [hidden], w2 [hidden][256], b2 [256].
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "rng.h"

#define MODEL_BYTES 256

struct model {
	size_t context, embed, hidden;
	size_t w1, b1, w2, b2; /* where they begin; the embedding begins at 0 */
	size_t params;
	float dropout;  /* share of the hidden units left out */
	float *weights; /* [params]: what forward and backward use */
	float *scratch; /* activations and their derivatives */
};

/* Begins with random weights. */
void model_init(struct model *m, size_t context, size_t embed, size_t hidden, float dropout,
		uint64_t seed);
void model_free(struct model *m);

/* Set the weights from half-precision copies. */
void model_set_weights(struct model *m, const uint16_t *fp16);

/*
 * Predict sample[context] from the bytes before it. Adds the derivatives of the loss to
 * grad[params], draws `hidden` numbers from `rng`, returns the loss in nats.
 */
double model_train(struct model *m, const unsigned char *sample, struct rng *rng, float *grad);

#endif
