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
 * Nothing here ends the process or throws: what fails returns NULL or -1, and cortado_error() says
 * why. Programs are data: whatever the bytes of a file are, it is refused or runs inside its own
 * memory. One thread at a time may use a net; nets that share weights run beside each other. */
#ifndef CORTADO_RUNTIME_H_
#define CORTADO_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CORTADO_API __attribute__((visibility("default")))

typedef struct cortado_net cortado_net;

/* What the elements of a tensor are: 8, 4, 2 and 2 bytes each, and one. */
enum cortado_type {
  CORTADO_FLOAT64 = 0,
  CORTADO_FLOAT32 = 1,
  CORTADO_FLOAT16 = 2,
  CORTADO_BFLOAT16 = 6,
  CORTADO_UINT8 = 7,
  CORTADO_INT8 = 8
};

typedef struct {
  const char* name; /* the blob's; lives as long as the net */
  enum cortado_type type;
  int axes;          /* 0 to 32 */
  int64_t shape[32]; /* N, C, H, W for images; 0 beyond the axes */
  int64_t count;     /* of all elements */
  void* data;        /* row-major; the same memory in each run */
} cortado_tensor;

/* The version of this library, as in "1.2.3". */
CORTADO_API const char* cortado_version(void);
/* What the last call of this thread that failed says; "" if none has. Lives until the next one. */
CORTADO_API const char* cortado_error(void);

/* A net from a file, or from bytes that may go afterwards; NULL: it cannot be read, is damaged, or
 * takes memory or kernels that are not there. */
CORTADO_API cortado_net* cortado_open(const char* path);
CORTADO_API cortado_net* cortado_open_bytes(const void* bytes, size_t size);
/* Another net over the same weights, with inputs and outputs of its own, for another thread. */
CORTADO_API cortado_net* cortado_share(const cortado_net* net);
/* NULL is no net, and closing it nothing. Memory of its tensors goes with it. */
CORTADO_API void cortado_close(cortado_net* net);

/* Input or output `index`, counted from 0 in the order of the net. -1 where there are not so many.
 */
CORTADO_API int cortado_input(const cortado_net* net, int index, cortado_tensor* tensor);
CORTADO_API int cortado_output(const cortado_net* net, int index, cortado_tensor* tensor);

/* On how many threads nets run that the calling thread opens from now on, and what is shared with
 * them; 0: on as many processors as the process may use. -1 for a negative number, or for more than
 * four times the processors (64 where these are fewer). */
CORTADO_API int cortado_set_threads(int threads);
/* Computes the outputs of what the inputs hold. Inputs may be overwritten. */
CORTADO_API int cortado_run(cortado_net* net);

#ifdef __cplusplus
}
#endif

#endif
