#include "caffe/io/blob_proto.hpp"

#include <bit>
#include <cstring>
#include <string>

#include "caffe/dtype.hpp"
#include "caffe/error.hpp"
#include "caffe/tensor/proto_dtype.hpp"

namespace caffe {
namespace {

static_assert(std::endian::native == std::endian::little,
              "raw_data holds little-endian values; a big-endian machine needs a byte swap here");

template <typename T>
std::vector<T> ReadRaw(const std::string& bytes, Type type) {
  const DType dtype = DTypeFromProto(type, "the type of a blob's raw values");
  Require(bytes.size() % SizeOf(dtype) == 0, "blob has ", bytes.size(),
          " bytes of raw values, not a multiple of ", SizeOf(dtype), ", the size of ", Name(dtype));
  std::vector<T> values(bytes.size() / SizeOf(dtype));
  VisitFloat(dtype, [&]<typename Stored>(TypeTag<Stored>) {
    for (size_t i = 0; i < values.size(); ++i) {
      Stored stored;
      std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
      values[i] = static_cast<T>(stored);
    }
  });
  return values;
}

template <typename T>
std::vector<T> ReadBlob(const BlobProto& blob, bool diff) {
  const auto& doubles = diff ? blob.double_diff() : blob.double_data();
  const auto& floats = diff ? blob.diff() : blob.data();
  const std::string& raw = diff ? blob.raw_diff() : blob.raw_data();
  std::vector<T> values;
  if (!doubles.empty()) {
    values.assign(doubles.begin(), doubles.end());
  } else if (!floats.empty()) {
    values.assign(floats.begin(), floats.end());
  } else if (!raw.empty()) {
    values = ReadRaw<T>(raw, diff ? blob.raw_diff_type() : blob.raw_data_type());
  } else if (diff) {
    return values;
  }
  CheckValueCount(blob, static_cast<int64_t>(values.size()), diff);
  return values;
}

template <typename T>
void CheckCount(const Shape& shape, std::span<const T> values) {
  Require(static_cast<int64_t>(values.size()) == shape.count(), "got ", values.size(),
          " values for a blob of shape ", shape, ", which needs ", shape.count());
}

void WriteShape(const Shape& shape, BlobProto* blob) {
  blob->clear_num();
  blob->clear_channels();
  blob->clear_height();
  blob->clear_width();
  blob->mutable_shape()->clear_dim();
  for (const int64_t extent : shape.dims()) blob->mutable_shape()->add_dim(extent);
}

void ClearValues(BlobProto* blob, bool diff) {
  if (diff) {
    blob->clear_diff();
    blob->clear_double_diff();
    blob->clear_raw_diff();
    blob->clear_raw_diff_type();
  } else {
    blob->clear_data();
    blob->clear_double_data();
    blob->clear_raw_data();
    blob->clear_raw_data_type();
  }
}

}  // namespace

Shape ShapeOf(const BlobProto& blob) {
  if (blob.has_num() || blob.has_channels() || blob.has_height() || blob.has_width()) {
    return Shape{blob.num(), blob.channels(), blob.height(), blob.width()};
  }
  return Shape(std::vector<int64_t>(blob.shape().dim().begin(), blob.shape().dim().end()));
}

void CheckValueCount(const BlobProto& blob, int64_t values, bool diff) {
  const Shape shape = ShapeOf(blob);
  Require(values == shape.count(), "blob has ", values, diff ? " gradient values" : " values",
          " but its shape ", shape, " needs ", shape.count());
}

std::vector<float> ReadBlobFloats(const BlobProto& blob, bool diff) {
  return ReadBlob<float>(blob, diff);
}

std::vector<double> ReadBlobDoubles(const BlobProto& blob, bool diff) {
  return ReadBlob<double>(blob, diff);
}

void WriteBlobFloats(const Shape& shape, std::span<const float> values, BlobProto* blob,
                     bool diff) {
  CheckCount(shape, values);
  WriteShape(shape, blob);
  ClearValues(blob, diff);
  (diff ? blob->mutable_diff() : blob->mutable_data())->Add(values.begin(), values.end());
}

void WriteBlobDoubles(const Shape& shape, std::span<const double> values, BlobProto* blob,
                      bool diff) {
  CheckCount(shape, values);
  WriteShape(shape, blob);
  ClearValues(blob, diff);
  (diff ? blob->mutable_double_diff() : blob->mutable_double_data())
      ->Add(values.begin(), values.end());
}

}  // namespace caffe
