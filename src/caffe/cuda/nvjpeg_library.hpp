// nvJPEG, loaded when a GPU is first to decode JPEG files. Declared here is what we call of it, as
// the library's binary interface has it: its header is in none of the packages that we build with.
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
  kGpuHybrid = 2,  // Huffman codes of large batches are decoded by the GPU, too
  kHardware = 3,   // a decoder beside the multiprocessors, of A100, H100, H200 and newer
};
enum OutputFormat : int { kY = 2, kBgrInterleaved = 6 };
enum Property : int { kMajor, kMinor, kPatch };
// Colours between the samples of a file are interpolated, as libjpeg-turbo does.
inline constexpr unsigned kUpsamplingWithInterpolation = 1u << 5;

struct Image {
  static constexpr int kMostComponents = 4;
  unsigned char* channel[kMostComponents] = {};
  size_t pitch[kMostComponents] = {};  // bytes from row to row
};

using Handle = struct nvjpegHandle*;
using State = struct nvjpegJpegState*;
using CudaStream = void*;

// The library's functions under their own names. `data` is host memory, images are device memory.
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

// Throws DeviceError where there is no libnvjpeg.so, or one that lacks a function.
const Library& GetLibrary();
// "13.3.2".
std::string VersionOf(const Library& library);

}  // namespace caffe::cuda::nvjpeg
