// An emulation of nvJPEG's documented behaviour: a batch is started for a number of files and a
// format, and again after an error; work belongs to a stream; the chip's decoder only takes
// baseline files. Any other use gets an error.
#include "nvjpeg.hpp"

#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/error.hpp"
#include "work_queue.hpp"

namespace caffe::cuda::nvjpeg {

struct nvjpegHandle {
  Backend backend;
};
struct nvjpegJpegState {
  int batch_size = 0;  // 0: not started
  OutputFormat format{};
};

namespace {

using cuda_on_host::Nvjpeg;

Status GetProperty(Property property, int* value) {
  *value = property == kMajor ? 13 : property == kMinor ? 3 : 2;
  return kSuccess;
}

Status CreateEx(Backend backend, void*, void*, unsigned, Handle* handle) {
  if (backend == kHardware && !Nvjpeg::Get().has_hardware) return kArchMismatch;
  *handle = new nvjpegHandle{backend};
  ++Nvjpeg::Get().handles;
  return kSuccess;
}

Status Destroy(Handle handle) {
  delete handle;
  --Nvjpeg::Get().handles;
  return kSuccess;
}

Status JpegStateCreate(Handle, State* state) {
  *state = new nvjpegJpegState;
  return kSuccess;
}

Status JpegStateDestroy(State state) {
  delete state;
  return kSuccess;
}

Status DecodeBatchedInitialize(Handle, State state, int batch_size, int cpu_threads,
                               OutputFormat format) {
  if (batch_size <= 0 || cpu_threads <= 0) return kInvalidParameter;
  *state = {batch_size, format};
  return kSuccess;
}

bool IsProgressive(std::string_view file) {
  return file.find("\xff\xc2") != std::string_view::npos;
}

Status DecodeOne(const nvjpegHandle& handle, OutputFormat format, std::string_view file,
                 data::Image* image) {
  if (handle.backend == kHardware && IsProgressive(file)) return kJpegNotSupported;
  try {
    *image =
        data::DecodeImage(file, format == kY ? data::ColorMode::kGray : data::ColorMode::kColor);
  } catch (const Error&) {
    return kBadJpeg;
  }
  return kSuccess;
}

Status Decode(Handle handle, State state, const unsigned char* const* data, const size_t* lengths,
              Image* destinations, CudaStream stream) {
  Nvjpeg& emulated = Nvjpeg::Get();
  if (emulated.fails_with != 0) return static_cast<Status>(emulated.fails_with.load());
  std::vector<data::Image> images(static_cast<size_t>(state->batch_size));
  for (size_t i = 0; i < images.size(); ++i) {
    const std::string_view file(reinterpret_cast<const char*>(data[i]), lengths[i]);
    const Status status = DecodeOne(*handle, state->format, file, &images[i]);
    if (status != kSuccess) ++emulated.refused;
    if (status != kSuccess) return status;
  }
  const std::vector<Image> to(destinations, destinations + images.size());
  cuda_on_host::Submit(static_cast<cudaStream_t>(stream), [images = std::move(images), to] {
    for (size_t i = 0; i < images.size(); ++i) {
      const data::ImageExtents& extents = images[i].extents;
      const size_t row = static_cast<size_t>(extents.width) * extents.channels;
      for (size_t y = 0; y < static_cast<size_t>(extents.height); ++y) {
        std::memcpy(to[i].channel[0] + y * to[i].pitch[0], images[i].pixels.data() + y * row, row);
      }
    }
  });
  if (emulated.after_batch)
    cuda_on_host::Submit(static_cast<cudaStream_t>(stream), emulated.after_batch);
  emulated.files += static_cast<int>(to.size());
  ++emulated.batches;
  return kSuccess;
}

Status DecodeBatched(Handle handle, State state, const unsigned char* const* data,
                     const size_t* lengths, Image* destinations, CudaStream stream) {
  if (state->batch_size == 0) return kInvalidParameter;
  std::this_thread::sleep_for(std::chrono::milliseconds(Nvjpeg::Get().delay_ms));
  const Status status = Decode(handle, state, data, lengths, destinations, stream);
  if (status != kSuccess) state->batch_size = 0;
  return status;
}

}  // namespace

const Library& GetLibrary() {
  if (Nvjpeg::Get().is_missing)
    throw DeviceError("nvJPEG (libnvjpeg.so.13) is not found; install it, or name its folder");
  static const Library library = {GetProperty,     CreateEx,         Destroy,
                                  JpegStateCreate, JpegStateDestroy, DecodeBatchedInitialize,
                                  DecodeBatched};
  return library;
}

}  // namespace caffe::cuda::nvjpeg

namespace cuda_on_host {

Nvjpeg& Nvjpeg::Get() {
  static Nvjpeg emulated;
  return emulated;
}

void Nvjpeg::Reset() {
  is_missing = false;
  has_hardware = true;
  fails_with = 0;
  files = batches = refused = 0;
  delay_ms = 0;
  after_batch = nullptr;
}

}  // namespace cuda_on_host
