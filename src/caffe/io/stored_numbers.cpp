#include "caffe/io/stored_numbers.hpp"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/wire_format_lite.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "caffe/decode_limit.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/blob_proto.hpp"
#include "caffe/io/message_size.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/shape.hpp"
#include "caffe/tensor/proto_dtype.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::FileInputStream;
using google::protobuf::io::StringOutputStream;

constexpr int kLeastBytesToSkip = 4096;
// An unknown field of a blob whose numbers were skipped: the index of its origin. The largest field
// number that there is.
constexpr int kOriginField = (1 << 29) - 1;

}  // namespace

// A file that is read at any position by several threads.
class WeightsFile {
 public:
  explicit WeightsFile(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    is_plain_ = descriptor_ >= 0 && ::fstat(descriptor_, &status_) == 0 && S_ISREG(status_.st_mode);
  }
  ~WeightsFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  WeightsFile(const WeightsFile&) = delete;
  WeightsFile& operator=(const WeightsFile&) = delete;

  // The one that is open already for this state of the file, or `opened`: nets that read from the
  // same file, as those of many threads, hold it open once.
  static std::shared_ptr<const WeightsFile> OpenOnce(std::shared_ptr<const WeightsFile> opened) {
    static std::mutex mutex;
    static std::map<std::vector<int64_t>, std::weak_ptr<const WeightsFile>> files;
    const std::lock_guard lock(mutex);
    std::erase_if(files, [](const auto& known) { return known.second.expired(); });
    std::weak_ptr<const WeightsFile>& known = files[Identity(opened->status_)];
    if (auto same = known.lock()) return same;
    known = opened;
    return opened;
  }

  bool is_plain() const { return is_plain_; }
  int descriptor() const { return descriptor_; }
  int64_t size() const { return status_.st_size; }

  void Read(int64_t offset, int64_t bytes, char* to) const {
    CheckIsUnchanged();
    while (bytes > 0) {
      const ssize_t count = ::pread(descriptor_, to, static_cast<size_t>(bytes), offset);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw IoError(StrCat(path_, ": cannot read: ", ErrnoText(errno)));
      if (count == 0) ThrowChanged();
      offset += count, to += count, bytes -= count;
    }
  }

 private:
  static std::vector<int64_t> Identity(const struct stat& status) {
    return {static_cast<int64_t>(status.st_dev), static_cast<int64_t>(status.st_ino),
            status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  }

  void CheckIsUnchanged() const {
    struct stat now {};
    if (::fstat(descriptor_, &now) != 0)
      throw IoError(StrCat(path_, ": cannot read: ", ErrnoText(errno)));
    if (Identity(now) != Identity(status_)) ThrowChanged();
  }
  [[noreturn]] void ThrowChanged() const {
    struct stat now {};
    ::fstat(descriptor_, &now);
    throw IoError(
        StrCat(path_, ": was changed while a net reads its weights from it (", status_.st_size,
               " bytes then, ", now.st_size,
               " now); load the weights again, and replace such files by renaming a new one"));
  }

  std::string path_;
  int descriptor_ = -1;
  bool is_plain_ = false;
  struct stat status_ {};
};

// Numbers of one blob.
class NumbersInFile final : public Origin {
 public:
  NumbersInFile(std::shared_ptr<const WeightsFile> file, int64_t offset, int64_t bytes,
                DType stored)
      : file_(std::move(file)), offset_(offset), bytes_(bytes), stored_(stored) {}

  int64_t count() const { return bytes_ / static_cast<int64_t>(SizeOf(stored_)); }
  bool reads_parts() const override { return true; }
  void Read(int64_t first, int64_t count, DType dtype, void* to) const override {
    CAFFE_ASSERT(first >= 0 && first + count <= this->count());
    const auto size = static_cast<int64_t>(SizeOf(stored_));
    if (stored_ == dtype)
      return file_->Read(offset_ + first * size, count * size, static_cast<char*>(to));
    constexpr int64_t kPart = 1 << 18;
    std::vector<char> part(static_cast<size_t>(std::min(count, kPart) * size));
    for (int64_t done = 0; done < count; done += kPart) {
      const int64_t numbers = std::min(kPart, count - done);
      file_->Read(offset_ + (first + done) * size, numbers * size, part.data());
      CopyTensor({{Shape{numbers}, stored_}, part.data()},
                 {{Shape{numbers}, dtype}, static_cast<char*>(to) + done * SizeOf(dtype)});
    }
  }

 private:
  const std::shared_ptr<const WeightsFile> file_;
  const int64_t offset_, bytes_;
  const DType stored_;
};

namespace {

// Copies a serialized net without the numbers of its blobs.
class Skimming {
 public:
  Skimming(const std::shared_ptr<const WeightsFile>& opened, WeightsInFile* weights)
      : opened_(*opened), file_(WeightsFile::OpenOnce(opened)), weights_(*weights) {}

  // Returns false if the file is damaged, or stores a blob's numbers in several pieces.
  bool Run(std::string* text) {
    FileInputStream stream(opened_.descriptor());
    CodedInputStream input(&stream);
    input.SetTotalBytesLimit(static_cast<int>(kMostBinaryProtoBytes));
    // Numbers may be skipped beyond the end of a file that was cut.
    return CopyFields(Level::kNet, &input, text) && input.ConsumedEntireMessage() &&
           input.CurrentPosition() == opened_.size();
  }

 private:
  enum class Level { kNet, kLayer, kOldLayer, kBlob };

  static std::optional<Level> Inner(Level level, int field) {
    if (level == Level::kNet && field == NetParameter::kLayerFieldNumber) return Level::kLayer;
    if (level == Level::kNet && field == NetParameter::kLayersFieldNumber) return Level::kOldLayer;
    if (level == Level::kLayer && field == LayerParameter::kBlobsFieldNumber) return Level::kBlob;
    if (level == Level::kOldLayer && field == V1LayerParameter::kBlobsFieldNumber)
      return Level::kBlob;
    return std::nullopt;
  }
  static bool IsGradient(int field) {
    return field == BlobProto::kDiffFieldNumber || field == BlobProto::kDoubleDiffFieldNumber ||
           field == BlobProto::kRawDiffFieldNumber;
  }

  bool CopyFields(Level level, CodedInputStream* input, std::string* text) {
    StringOutputStream stream(text);
    CodedOutputStream output(&stream);
    std::optional<DType> raw_type;
    bool has_numbers = false;  // of a blob
    while (const uint32_t tag = input->ReadTag()) {
      const int field = WireFormatLite::GetTagFieldNumber(tag);
      const bool is_bytes =
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      if (level == Level::kBlob && !is_bytes && field == BlobProto::kRawDataTypeFieldNumber) {
        uint64_t type = 0;
        if (!input->ReadVarint64(&type)) return false;
        raw_type = TypeOf(type);
        output.WriteTag(tag);
        output.WriteVarint64(type);
        continue;
      }
      const std::optional<DType> numbers =
          level == Level::kBlob ? NumbersOf(field, raw_type) : std::nullopt;
      if (level == Level::kBlob && field == kOriginField) return false;
      const bool is_gradient = level == Level::kBlob && IsGradient(field);
      const std::optional<Level> inner = Inner(level, field);
      if (!is_bytes || (!numbers && !is_gradient && !inner)) {
        if (numbers || !WireFormatLite::SkipField(input, tag, &output)) return false;
        continue;
      }
      int bytes = 0;
      if (!input->ReadVarintSizeAsInt(&bytes)) return false;
      if (inner) {
        const CodedInputStream::Limit limit = input->PushLimit(bytes);
        std::string message;
        if (!CopyFields(*inner, input, &message) || !input->ConsumedEntireMessage()) return false;
        input->PopLimit(limit);
        Write(tag, message, &output);
      } else if (is_gradient) {
        if (!input->Skip(bytes)) return false;
      } else if (std::exchange(has_numbers, true)) {
        return false;
      } else if (!CopyNumbers(tag, *numbers, bytes, input, &output)) {
        return false;
      }
    }
    return true;
  }

  bool CopyNumbers(uint32_t tag, DType type, int bytes, CodedInputStream* input,
                   CodedOutputStream* output) {
    if (bytes < kLeastBytesToSkip || bytes % static_cast<int>(SizeOf(type)) != 0) {
      std::string numbers;
      if (!input->ReadString(&numbers, bytes)) return false;
      Write(tag, numbers, output);
      return true;
    }
    const int offset = input->CurrentPosition();
    if (!input->Skip(bytes)) return false;
    output->WriteTag(WireFormatLite::MakeTag(kOriginField, WireFormatLite::WIRETYPE_VARINT));
    output->WriteVarint64(weights_.origins.size());
    weights_.origins.push_back(std::make_shared<NumbersInFile>(file_, offset, bytes, type));
    return true;
  }

  static void Write(uint32_t tag, const std::string& bytes, CodedOutputStream* output) {
    output->WriteTag(tag);
    output->WriteVarint32(static_cast<uint32_t>(bytes.size()));
    output->WriteString(bytes);
  }

  static std::optional<DType> NumbersOf(int field, std::optional<DType> raw_type) {
    if (field == BlobProto::kDataFieldNumber) return DType::kFloat;
    if (field == BlobProto::kDoubleDataFieldNumber) return DType::kDouble;
    if (field == BlobProto::kRawDataFieldNumber) return raw_type;
    return std::nullopt;
  }
  static std::optional<DType> TypeOf(uint64_t number) {
    const int type = static_cast<int>(number);
    if (!Type_IsValid(type)) return std::nullopt;
    try {
      return DTypeFromProto(static_cast<Type>(type), "the type of a blob's raw values");
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  const WeightsFile& opened_;                      // read from its beginning
  const std::shared_ptr<const WeightsFile> file_;  // of the origins
  WeightsInFile& weights_;
};

bool Parse(const std::string& text, NetParameter* net) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
  CodedInputStream coded(bytes, static_cast<int>(text.size()));
  return ParsedBytes(&coded, *net->GetDescriptor()) <= MostDecodedBytes(text.size()) &&
         net->ParsePartialFromString(text) && net->IsInitialized();
}

}  // namespace

std::shared_ptr<const Origin> WeightsInFile::OriginOf(const BlobProto& blob) const {
  const auto& unknown = blob.GetReflection()->GetUnknownFields(blob);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto& field = unknown.field(i);
    if (field.number() == kOriginField &&
        field.type() == google::protobuf::UnknownField::TYPE_VARINT &&
        field.varint() < origins.size()) {
      const std::shared_ptr<const NumbersInFile>& origin = origins[field.varint()];
      CheckValueCount(blob, origin->count());
      return origin;
    }
  }
  return nullptr;
}

WeightsInFile ReadWeights(const std::string& path) {
  WeightsInFile weights;
  const auto file = std::make_shared<const WeightsFile>(path);
  std::string text;
  const bool is_skimmed = file->is_plain() && Skimming(file, &weights).Run(&text) &&
                          !weights.origins.empty() && Parse(text, &weights.net);
  if (!is_skimmed) {
    weights.origins.clear();
    weights.net = ReadNetBinary(path);
    return weights;
  }
  FinishNetBinary(path, &weights.net);
  return weights;
}

}  // namespace caffe
