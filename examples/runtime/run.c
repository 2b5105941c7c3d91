/* Runs a compiled net: cortado_run NET.cortado [-threads N] [-times N] [INPUT.raw ...]
 *
 * Each file holds the numbers of one input, in the input's type; inputs without a file are 0. Prints
 * the outputs, one number per line; with -times N also the time of each of N runs. */
#define _POSIX_C_SOURCE 199309L /* for clock_gettime with -std=c99 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cortado/runtime.h"

static int fail(void) {
  fprintf(stderr, "cortado_run: %s\n", cortado_error());
  return 1;
}

static size_t element_bytes(enum cortado_type type) {
  if (type == CORTADO_FLOAT64) return 8;
  if (type == CORTADO_FLOAT32) return 4;
  return type == CORTADO_UINT8 || type == CORTADO_INT8 ? 1 : 2;
}

static int fill(const cortado_tensor* tensor, const char* path) {
  const size_t wanted = (size_t)tensor->count * element_bytes(tensor->type);
  FILE* file = fopen(path, "rb");
  size_t got = 0;
  if (file != NULL) {
    got = fread(tensor->data, 1, wanted, file);
    if (got == wanted && fgetc(file) != EOF) ++got; /* too long */
    fclose(file);
  }
  if (got == wanted) return 0;
  fprintf(stderr, "cortado_run: %s: not of the %zu bytes that input '%s' takes\n", path,
          wanted, tensor->name);
  return 1;
}

static float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

/* IEEE 754 binary16: 1 bit sign, 5 bits exponent, 10 bits fraction. */
static float from_half(uint16_t half) {
  const uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 31;
  const uint32_t fraction = half & 1023;
  if (exponent == 0) return (sign ? -1.0f : 1.0f) * (float)fraction / 16777216.0f; /* 2^24 */
  return from_bits(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13);
}

static double element(const cortado_tensor* tensor, int64_t i) {
  switch (tensor->type) {
    case CORTADO_FLOAT64:
      return ((const double*)tensor->data)[i];
    case CORTADO_FLOAT16:
      return from_half(((const uint16_t*)tensor->data)[i]);
    case CORTADO_BFLOAT16:
      return from_bits((uint32_t)((const uint16_t*)tensor->data)[i] << 16);
    case CORTADO_UINT8:
      return ((const unsigned char*)tensor->data)[i];
    case CORTADO_INT8:
      return ((const signed char*)tensor->data)[i];
    default:
      return ((const float*)tensor->data)[i];
  }
}

static void print(const cortado_tensor* tensor) {
  printf("%s", tensor->name);
  for (int axis = 0; axis < tensor->axes; ++axis) printf(" %lld", (long long)tensor->shape[axis]);
  printf("\n");
  for (int64_t i = 0; i < tensor->count; ++i) printf("%.9g\n", element(tensor, i));
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char** argv) {
  int times = 0, first = 2, input = 0;
  cortado_tensor tensor;
  cortado_net* net;
  if (argc < 2) {
    fprintf(stderr, "usage: %s NET.cortado [-threads N] [-times N] [INPUT.raw ...]\n", argv[0]);
    return 1;
  }
  for (; first + 1 < argc && argv[first][0] == '-'; first += 2) {
    const int number = atoi(argv[first + 1]);
    if (strcmp(argv[first], "-times") == 0) {
      times = number;
    } else if (strcmp(argv[first], "-threads") != 0 || cortado_set_threads(number) != 0) {
      fprintf(stderr, "cortado_run: %s %s\n", argv[first], cortado_error());
      return 1;
    }
  }
  const double start = now();
  net = cortado_open(argv[1]);
  if (net == NULL) return fail();
  if (times > 0) fprintf(stderr, "opened in %.3f ms\n", 1e3 * (now() - start));
  for (; first < argc; ++first, ++input) {
    if (cortado_input(net, input, &tensor) != 0) return fail();
    if (fill(&tensor, argv[first]) != 0) return 1;
  }
  if (cortado_run(net) != 0) return fail();
  for (int output = 0; cortado_output(net, output, &tensor) == 0; ++output) print(&tensor);
  for (int i = 0; i < times; ++i) {
    const double begin = now();
    if (cortado_run(net) != 0) return fail();
    fprintf(stderr, "%.3f ms\n", 1e3 * (now() - begin));
  }
  cortado_close(net);
  return 0;
}
