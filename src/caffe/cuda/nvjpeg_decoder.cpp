// Decodes JPEG files with nvJPEG: with the chip's hardware decoder if it has one, otherwise on its
// multiprocessors.
#include <algorithm>
#include <vector>

#include "caffe/cuda/nvjpeg_library.hpp"
#include "caffe/device/host_memory.hpp"
#include "caffe/device/jpeg_decoder.hpp"
#include "caffe/error.hpp"

namespace caffe::cuda {
namespace nvjpeg {

std::string VersionOf(const Library& library) {
  int version[3] = {};
  for (const Property property : {kMajor, kMinor, kPatch})
    library.GetProperty(property, &version[property]);
  return StrCat(version[0], ".", version[1], ".", version[2]);
}

}  // namespace nvjpeg

namespace {

using nvjpeg::Library;
using nvjpeg::Status;

constexpr size_t kAlignment = 256;

void Check(Status status, const char* call) {
  if (status == nvjpeg::kSuccess) return;
  throw DeviceError(StrCat("cuda: nvJPEG: ", call, " returned status ", static_cast<int>(status),
                           "; set CAFFE_JPEG_DECODER=cpu to decode without it"));
}

// True for errors caused by the files, not by the device.
bool IsOfFiles(Status status) {
  return status == nvjpeg::kBadJpeg || status == nvjpeg::kJpegNotSupported ||
         status == nvjpeg::kImplementationNotSupported || status == nvjpeg::kIncompleteBitstream;
}

// A buffer that grows and never shrinks.
struct Growing {
  std::shared_ptr<void> memory;
  size_t bytes = 0;
};

class NvjpegDecoder final : public DeviceJpegDecoder {
 public:
  explicit NvjpegDecoder(std::shared_ptr<Device> device)
      : library_(nvjpeg::GetLibrary()), device_(std::move(device)) {
    if (device_->reduces_with_others()) {
      throw Unsupported(
          "nvJPEG allocates memory while it decodes, which several GPUs of one process must not "
          "do; "
          "start a process for each GPU to decode on them");
    }
    device_->MakeCurrent();
    stream_ = device_->MakeStream();
    zeroed_ = device_->MakeEvent();
    CreateHandle();
    const Status status = library_.JpegStateCreate(handle_, &state_);
    if (status != nvjpeg::kSuccess) library_.Destroy(handle_);
    Check(status, "nvjpegJpegStateCreate");
  }

  ~NvjpegDecoder() override {
    library_.JpegStateDestroy(state_);
    library_.Destroy(handle_);
  }

  std::string name() const override { return "nvJPEG " + nvjpeg::VersionOf(library_); }

  bool Decode(std::span<JpegFile> files) override {
    if (files.empty()) return true;
    device_->MakeCurrent();
    Start(files);
    const size_t bytes = Place(files);
    const Status status = library_.DecodeBatched(handle_, state_, data_.data(), lengths_.data(),
                                                 images_.data(), stream_->native());
    if (status != nvjpeg::kSuccess) {
      prepared_for_ = 0;  // a failed batch needs a new initialisation
      stream_->Synchronize();
      if (IsOfFiles(status)) return false;
      Check(status, "nvjpegDecodeBatched");
    }
    stream_->CopyToHost(host_.memory.get(), pixels_.memory.get(), bytes);
    stream_->Synchronize();
    for (size_t i = 0; i < files.size(); ++i)
      files[i].pixels = static_cast<const uint8_t*>(host_.memory.get()) + offsets_[i];
    return true;
  }

 private:
  // Creates the fastest decoder that the chip and the library support.
  void CreateHandle() {
    Status status = nvjpeg::kSuccess;
    for (const nvjpeg::Backend backend : {nvjpeg::kHardware, nvjpeg::kGpuHybrid}) {
      for (const unsigned flags : {nvjpeg::kUpsamplingWithInterpolation, 0u}) {
        status = library_.CreateEx(backend, nullptr, nullptr, flags, &handle_);
        if (status == nvjpeg::kSuccess) return;
      }
    }
    Check(status, "nvjpegCreateEx");
  }

  void Start(std::span<const JpegFile> files) {
    const auto format = files[0].channels == 1 ? nvjpeg::kY : nvjpeg::kBgrInterleaved;
    if (prepared_for_ == files.size() && format == format_) return;
    Check(library_.DecodeBatchedInitialize(handle_, state_, static_cast<int>(files.size()),
                                           /*cpu_threads=*/1, format),
          "nvjpegDecodeBatchedInitialize");
    prepared_for_ = files.size();
    format_ = format;
  }

  // Assigns memory to the images; returns the total number of bytes.
  size_t Place(std::span<const JpegFile> files) {
    offsets_.clear();
    size_t bytes = 0;
    for (const JpegFile& file : files) {
      CAFFE_ASSERT(file.channels == files[0].channels, file.channels);
      offsets_.push_back(bytes);
      bytes += (file.pixel_bytes() + kAlignment - 1) / kAlignment * kAlignment;
    }
    if (bytes > pixels_.bytes) {
      pixels_ = {device_->Allocate(bytes), bytes};
      device_->compute_stream().Record(*zeroed_);
      stream_->Wait(*zeroed_);
      host_ = {AllocateHostMemory(*device_, bytes), bytes};
    }
    data_.clear();
    lengths_.clear();
    images_.assign(files.size(), {});
    for (size_t i = 0; i < files.size(); ++i) {
      data_.push_back(reinterpret_cast<const unsigned char*>(files[i].bytes.data()));
      lengths_.push_back(files[i].bytes.size());
      images_[i].channel[0] = static_cast<unsigned char*>(pixels_.memory.get()) + offsets_[i];
      images_[i].pitch[0] = static_cast<size_t>(files[i].width) * files[i].channels;
    }
    return bytes;
  }

  const Library& library_;
  const std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> zeroed_;  // new pixels are zeroed, on the compute stream
  nvjpeg::Handle handle_ = nullptr;
  nvjpeg::State state_ = nullptr;
  size_t prepared_for_ = 0;  // number of files in a batch
  nvjpeg::OutputFormat format_ = nvjpeg::kBgrInterleaved;
  Growing pixels_, host_;
  std::vector<size_t> offsets_, lengths_;
  std::vector<const unsigned char*> data_;
  std::vector<nvjpeg::Image> images_;
};

const JpegDecoderRegistrar jpeg_decoder_registrar(DeviceKind::kCuda,
                                                  [](const std::shared_ptr<Device>& device)
                                                      -> std::unique_ptr<DeviceJpegDecoder> {
                                                    return std::make_unique<NvjpegDecoder>(device);
                                                  });

}  // namespace
}  // namespace caffe::cuda
