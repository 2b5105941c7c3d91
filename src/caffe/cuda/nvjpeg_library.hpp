// nvJPEG, loaded when a GPU first decodes JPEG files. Declares the part of the library's binary
// interface that we call, because none of the packages that we build with has its header.
#pragma once

#include <cstddef>
#include <string>

namespace caffe::cuda::nvjpeg {

enum Status : int {
  kSuccess = 0,
  kInvalidParameter = 2,
  kBadJpeg = 3,
  kJpegNotSupported = 4,
  kAllocatorFailure = 5,
  kExecutionFailed = 6,
  kArchMismatch = 7,
  kImplementationNotSupported = 9,
  kIncompleteBitstream = 10
};
enum Backend : int {
  kGpuHybrid = 2,  // the GPU also decodes Huffman codes of large batches
  kHardware = 3,   // separate decoder of A100, H100, H200 and newer
};
enum OutputFormat : int { kY = 2, kBgrInterleaved = 6 };
enum Property : int { kMajor, kMinor, kPatch };
// Interpolates subsampled colours, as libjpeg-turbo does.
inline constexpr unsigned kUpsamplingWithInterpolation = 1u << 5;

struct Image {
  static constexpr int kMostComponents = 4;
  unsigned char* channel[kMostComponents] = {};
  size_t pitch[kMostComponents] = {};  // bytes between rows
};

using Handle = struct nvjpegHandle*;
using State = struct nvjpegJpegState*;
using CudaStream = void*;

// The library's functions by their own names. `data` is host memory, images are device memory.
struct Library {
  Status (*GetProperty)(Property property, int* value);
  Status (*CreateEx)(Backend backend, void* device_allocator, void* pinned_allocator,
                     unsigned flags, Handle* handle);
  Status (*Destroy)(Handle handle);
  Status (*JpegStateCreate)(Handle handle, State* state);
  Status (*JpegStateDestroy)(State state);
  Status (*DecodeBatchedInitialize)(Handle handle, State state, int batch_size, int cpu_threads,
                                    OutputFormat format);
  Status (*DecodeBatched)(Handle handle, State state, const unsigned char* const* data,
                          const size_t* lengths, Image* destinations, CudaStream stream);
};

// Throws DeviceError if there is no libnvjpeg.so, or one that lacks a function.
const Library& GetLibrary();
// Returns a version such as "13.3.2".
std::string VersionOf(const Library& library);

}  // namespace caffe::cuda::nvjpeg
