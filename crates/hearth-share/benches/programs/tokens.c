// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shape of inference: for each token a few layers, one after the other, each a product of a
 * matrix and a vector in a parallel region of its own. tokens TOKENS WIDTH
 */
#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 24 };

int main(int count, char **arguments)
{
	int tokens = count > 1 ? atoi(arguments[1]) : 400,
	    width = count > 2 ? atoi(arguments[2]) : 384;
	float *weights = malloc((size_t)LAYERS * width * width * sizeof(float));
	float *state = malloc(width * sizeof(float)), *next = malloc(width * sizeof(float));
	double sum = 0;

	for (size_t i = 0; i < (size_t)LAYERS * width * width; i++)
		weights[i] = (float)(i * 2654435761u % 1000) / 1000 - 0.5f;
	for (int i = 0; i < width; i++)
		state[i] = 1;
	for (int token = 0; token < tokens; token++) {
		for (int layer = 0; layer < LAYERS; layer++) {
			const float *matrix = weights + (size_t)layer * width * width;
			float *swap = state;

#pragma omp parallel for
			for (int i = 0; i < width; i++) {
				float dot = 0;

				for (int k = 0; k < width; k++)
					dot += matrix[(size_t)i * width + k] * state[k];
				next[i] = dot > 1 ? 1 : dot < -1 ? -1 : dot;
			}
			state = next;
			next = swap;
		}
		sum += state[token % width];
	}
	printf("%.3f\n", sum);
	return 0;
}
