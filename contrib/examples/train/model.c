#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"
#include "memory.h"

static void fill_uniform(float *values, size_t count, float limit, struct rng *rng)
{
	for (size_t i = 0; i < count; i++)
		values[i] = (2 * rng_uniform(rng) - 1) * limit;
}

void model_init(struct model *m, size_t context, size_t embed, size_t hidden, float dropout,
		uint64_t seed)
{
	struct rng rng = rng_start(seed, UINT64_MAX); /* no rank has this stream */
	size_t inputs = context * embed;

	*m = (struct model){
		.context = context, .embed = embed, .hidden = hidden, .dropout = dropout};
	m->w1 = MODEL_BYTES * embed;
	m->b1 = m->w1 + inputs * hidden;
	m->w2 = m->b1 + hidden;
	m->b2 = m->w2 + hidden * MODEL_BYTES;
	m->params = m->b2 + MODEL_BYTES;
	m->weights = memory_zeroed(m->params, sizeof(float));
	m->scratch = memory_zeroed(inputs + 2 * hidden + MODEL_BYTES, sizeof(float));
	fill_uniform(m->weights, m->w1, 1, &rng);
	fill_uniform(m->weights + m->w1, inputs * hidden, sqrtf(3 / (float)inputs), &rng);
	fill_uniform(m->weights + m->w2, hidden * MODEL_BYTES, sqrtf(1 / (float)hidden), &rng);
}

void model_free(struct model *m)
{
	free(m->weights);
	free(m->scratch);
	m->weights = m->scratch = NULL;
}

void model_set_weights(struct model *m, const uint16_t *fp16)
{
	for (size_t i = 0; i < m->params; i++)
		m->weights[i] = half_to_float(fp16[i]);
}

/* y[0, n) += a * x[0, n) */
static void add_scaled(float *y, float a, const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] += a * x[i];
}

static float dot(const float *x, const float *y, size_t n)
{
	float sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i] * y[i];
	return sum;
}

/* Turns logits into probabilities; returns the loss. */
static double softmax(float *logits, unsigned char target)
{
	float largest = logits[0], sum = 0;
	double loss;

	for (int i = 1; i < MODEL_BYTES; i++)
		largest = fmaxf(largest, logits[i]);
	for (int i = 0; i < MODEL_BYTES; i++)
		sum += expf(logits[i] - largest);
	loss = log((double)sum) + (double)largest - (double)logits[target];
	for (int i = 0; i < MODEL_BYTES; i++)
		logits[i] = expf(logits[i] - largest) / sum;
	return loss;
}

static void forward(const struct model *m, const unsigned char *sample, struct rng *rng,
		    float *input, float *hidden, float *logits)
{
	const float *w = m->weights;
	float scale = 1 / (1 - m->dropout);

	for (size_t c = 0; c < m->context; c++)
		memcpy(input + c * m->embed, w + sample[c] * m->embed, m->embed * sizeof(float));
	memcpy(hidden, w + m->b1, m->hidden * sizeof(float));
	for (size_t i = 0; i < m->context * m->embed; i++)
		add_scaled(hidden, input[i], w + m->w1 + i * m->hidden, m->hidden);
	memcpy(logits, w + m->b2, MODEL_BYTES * sizeof(float));
	for (size_t j = 0; j < m->hidden; j++) {
		int kept = rng_uniform(rng) >= m->dropout;

		hidden[j] = kept && hidden[j] > 0 ? hidden[j] * scale : 0;
		if (hidden[j] > 0)
			add_scaled(logits, hidden[j], w + m->w2 + j * MODEL_BYTES, MODEL_BYTES);
	}
}

/* `d_logits` and `d_hidden`: derivatives of the loss by them. */
static void backward(const struct model *m, const unsigned char *sample, const float *input,
		     const float *hidden, const float *d_logits, float *d_hidden, float *grad)
{
	const float *w = m->weights;
	float scale = 1 / (1 - m->dropout);

	add_scaled(grad + m->b2, 1, d_logits, MODEL_BYTES);
	for (size_t j = 0; j < m->hidden; j++) {
		size_t row = m->w2 + j * MODEL_BYTES;

		d_hidden[j] = 0;
		if (hidden[j] > 0) {
			d_hidden[j] = dot(w + row, d_logits, MODEL_BYTES) * scale;
			add_scaled(grad + row, hidden[j], d_logits, MODEL_BYTES);
		}
	}
	add_scaled(grad + m->b1, 1, d_hidden, m->hidden);
	for (size_t i = 0; i < m->context * m->embed; i++) {
		size_t row = m->w1 + i * m->hidden;
		size_t place = sample[i / m->embed] * m->embed + i % m->embed;

		grad[place] += dot(w + row, d_hidden, m->hidden);
		add_scaled(grad + row, input[i], d_hidden, m->hidden);
	}
}

double model_train(struct model *m, const unsigned char *sample, struct rng *rng, float *grad)
{
	float *input = m->scratch;
	float *hidden = input + m->context * m->embed;
	float *d_hidden = hidden + m->hidden;
	float *logits = d_hidden + m->hidden;
	unsigned char target = sample[m->context];
	double loss;

	forward(m, sample, rng, input, hidden, logits);
	loss = softmax(logits, target);
	logits[target] -= 1; /* p - 1 at the target, p elsewhere: the derivative by the logits */
	backward(m, sample, input, hidden, logits, d_hidden, grad);
	return loss;
}
