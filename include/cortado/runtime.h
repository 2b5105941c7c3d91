/* The runtime library: runs the programs that `caffe compile` writes, and needs nothing of Caffe.
 *
 *     cortado_net* net = cortado_open("net.cortado");
 *     cortado_tensor image, scores;
 *     cortado_input(net, 0, &image);
 *     fill((float*)image.data, image.count);
 *     cortado_run(net);
 *     cortado_output(net, 0, &scores);
 *     cortado_close(net);
 *
 * Nothing here ends the process or throws; functions return NULL or -1 on failure, and
 * cortado_error() says why. Programs are data: whatever bytes a file contains, it is rejected or
 * runs within its own memory. One thread at a time may use a net; nets that share weights may run
 * in parallel. */
#ifndef CORTADO_RUNTIME_H_
#define CORTADO_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CORTADO_API __attribute__((visibility("default")))

typedef struct cortado_net cortado_net;

/* Element types of tensors: 8, 4, 2, 2, 1 and 1 bytes per element. */
enum cortado_type {
  CORTADO_FLOAT64 = 0,
  CORTADO_FLOAT32 = 1,
  CORTADO_FLOAT16 = 2,
  CORTADO_BFLOAT16 = 6,
  CORTADO_UINT8 = 7,
  CORTADO_INT8 = 8
};

typedef struct {
  const char* name; /* of the blob; valid as long as the net */
  enum cortado_type type;
  int axes;          /* 0 to 32 */
  int64_t shape[32]; /* N, C, H, W for images; 0 beyond the axes */
  int64_t count;     /* number of elements */
  void* data;        /* row-major; the same memory in each run */
} cortado_tensor;

/* The version of this library, such as "1.2.3". */
CORTADO_API const char* cortado_version(void);
/* The error text of this thread's last failed call; "" if none. Valid until the next failure. */
CORTADO_API const char* cortado_error(void);

/* Opens a net from a file, or from bytes that may be freed afterwards. NULL if it cannot be read,
 * is damaged, or needs more memory or other kernels than are available. */
CORTADO_API cortado_net* cortado_open(const char* path);
CORTADO_API cortado_net* cortado_open_bytes(const void* bytes, size_t size);
/* Returns a net with the same weights and its own inputs and outputs, for another thread. */
CORTADO_API cortado_net* cortado_share(const cortado_net* net);
/* Closes a net and frees the memory of its tensors. Does nothing for NULL. */
CORTADO_API void cortado_close(cortado_net* net);

/* Describes input or output `index`, counted from 0 in the order of the net. -1 if out of range. */
CORTADO_API int cortado_input(const cortado_net* net, int index, cortado_tensor* tensor);
CORTADO_API int cortado_output(const cortado_net* net, int index, cortado_tensor* tensor);

/* Sets the number of threads of nets that the calling thread opens from now on, and of nets that
 * share with them; 0: all processors that the process may use. Returns -1 for a negative number, or
 * for more than the larger of 64 and four times the number of processors. */
CORTADO_API int cortado_set_threads(int threads);
/* Computes the outputs from the inputs, which may be overwritten. */
CORTADO_API int cortado_run(cortado_net* net);

#ifdef __cplusplus
}
#endif

#endif
