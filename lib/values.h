/*
 * Elements as numbers, for those who compare or show them.
 */
#ifndef CK_VALUES_H
#define CK_VALUES_H

#include "tensor.h"

/*
 * |a - b| of two elements. Infinity when one of them is not a number and the other is; 0 when both are
 * not, or are infinite alike. Of complex numbers the distance. Neither needs to be aligned.
 * Source of the 8-bit types: OCP "8-bit Floating Point Specification", and ONNX for the FNUZ ones.
 */
double ck_value_distance(enum ck_dtype dtype, const void *a, const void *b);

#endif
