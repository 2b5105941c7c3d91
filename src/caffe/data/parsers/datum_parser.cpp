#include "caffe/data/parsers/datum_parser.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <turbojpeg.h>

#include <limits>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "caffe/data/parsers/broken_image.hpp"
#include "caffe/error.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// The fields of a Datum, its bytes left where they are. Parsing into a Datum message would copy
// every pixel once more.
struct DatumFields {
  DatumView view;
  std::string_view data;
  std::string_view floats;          // packed
  std::vector<float> loose_floats;  // unpacked, one field each: how proto2 writes float_data
  bool is_encoded = false;
};

bool ReadBytes(CodedInputStream& input, const char* begin, std::string_view* bytes) {
  uint32_t length = 0;
  if (!input.ReadVarint32(&length)) return false;
  const int at = input.CurrentPosition();
  if (!input.Skip(static_cast<int>(length))) return false;
  *bytes = {begin + at, length};
  return true;
}

bool ReadDatum(CodedInputStream& input, const char* begin, DatumFields* fields) {
  while (const uint32_t tag = input.ReadTag()) {
    const int number = WireFormatLite::GetTagFieldNumber(tag);
    const WireFormatLite::WireType type = WireFormatLite::GetTagWireType(tag);
    const bool is_varint = type == WireFormatLite::WIRETYPE_VARINT;
    const bool is_bytes = type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    uint64_t number_value = 0;
    if (is_varint && number <= 7 && !input.ReadVarint64(&number_value)) return false;
    if (is_varint && number == Datum::kChannelsFieldNumber) {
      fields->view.channels = static_cast<int>(number_value);
    } else if (is_varint && number == Datum::kHeightFieldNumber) {
      fields->view.height = static_cast<int>(number_value);
    } else if (is_varint && number == Datum::kWidthFieldNumber) {
      fields->view.width = static_cast<int>(number_value);
    } else if (is_varint && number == Datum::kLabelFieldNumber) {
      fields->view.label = static_cast<int>(number_value);
    } else if (is_varint && number == Datum::kEncodedFieldNumber) {
      fields->is_encoded = number_value != 0;
    } else if (is_bytes && number == Datum::kDataFieldNumber) {
      if (!ReadBytes(input, begin, &fields->data)) return false;
    } else if (is_bytes && number == Datum::kFloatDataFieldNumber) {
      if (!ReadBytes(input, begin, &fields->floats)) return false;
    } else if (type == WireFormatLite::WIRETYPE_FIXED32 && number == Datum::kFloatDataFieldNumber) {
      float value = 0;
      if (!WireFormatLite::ReadPrimitive<float, WireFormatLite::TYPE_FLOAT>(&input, &value)) return false;
      fields->loose_floats.push_back(value);
    } else if (!(is_varint && number <= 7) && !WireFormatLite::SkipField(&input, tag)) {
      return false;
    }
  }
  return input.ConsumedEntireMessage();
}

bool IsJpeg(std::string_view bytes) {
  return bytes.size() > 2 && bytes[0] == '\xff' && bytes[1] == '\xd8';
}

}  // namespace

struct DatumParser::Impl {
  ColorMode color;
  DatumFields fields;
  tjhandle decoder = nullptr;
  std::vector<uint8_t> pixels;

  explicit Impl(ColorMode mode) : color(mode), decoder(tjInitDecompress()) {}
  ~Impl() {
    if (decoder != nullptr) tjDestroy(decoder);
  }

  DatumView DecodeJpeg(std::string_view image);
  DatumView DecodeOther(std::string_view image);
};

DatumParser::DatumParser(ColorMode color) : impl_(std::make_unique<Impl>(color)) {}
DatumParser::~DatumParser() = default;

DatumView DatumParser::Parse(std::string_view record) {
  DatumFields& fields = impl_->fields;
  fields.view = {};
  fields.data = fields.floats = {};
  fields.loose_floats.clear();
  fields.is_encoded = false;
  CodedInputStream input(reinterpret_cast<const uint8_t*>(record.data()), static_cast<int>(record.size()));
  input.SetTotalBytesLimit(std::numeric_limits<int>::max());
  if (!ReadDatum(input, record.data(), &fields)) {
    throw IoError(StrCat("not a Datum (parse error at byte ", input.CurrentPosition(), " of ", record.size(), ")"));
  }
  DatumView view = fields.view;
  if (fields.is_encoded) {
    const int label = view.label;
    view = Decode(fields.data);
    view.label = label;
    return view;
  }
  const int64_t count = int64_t{view.channels} * view.height * view.width;
  const bool has_pixels = !fields.data.empty();
  const int64_t floats = fields.floats.empty() ? static_cast<int64_t>(fields.loose_floats.size())
                                               : static_cast<int64_t>(fields.floats.size() / sizeof(float));
  const int64_t have = has_pixels ? static_cast<int64_t>(fields.data.size()) : floats;
  if (view.channels <= 0 || view.height <= 0 || view.width <= 0 || have != count) {
    throw IoError(StrCat("not a Datum of an image: it says ", view.channels, "x", view.height, "x", view.width,
                         ", that is ", count, " values, and has ", have));
  }
  if (has_pixels) {
    view.pixels = reinterpret_cast<const uint8_t*>(fields.data.data());
  } else if (!fields.floats.empty()) {
    view.floats = fields.floats.data();
  } else {
    view.floats = reinterpret_cast<const char*>(fields.loose_floats.data());
  }
  return view;
}

DatumView DatumParser::Decode(std::string_view image) {
  if (image.empty()) throw BrokenImage("the encoded image is empty");
  return IsJpeg(image) ? impl_->DecodeJpeg(image) : impl_->DecodeOther(image);
}

DatumView DatumParser::Impl::DecodeJpeg(std::string_view image) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(image.data());
  DatumView view;
  int subsampling = 0, space = 0;
  if (tjDecompressHeader3(decoder, bytes, image.size(), &view.width, &view.height, &subsampling, &space) != 0) {
    throw BrokenImage(StrCat("broken JPEG: ", tjGetErrorStr2(decoder)));
  }
  const bool is_gray = color == ColorMode::kGray || (color == ColorMode::kAsStored && space == TJCS_GRAY);
  if (space == TJCS_CMYK || space == TJCS_YCCK) return DecodeOther(image);
  view.channels = is_gray ? 1 : 3;
  view.is_interleaved = !is_gray;
  pixels.resize(static_cast<size_t>(view.channels) * view.height * view.width);
  const int status = tjDecompress2(decoder, bytes, image.size(), pixels.data(), view.width, 0, view.height,
                                   is_gray ? TJPF_GRAY : TJPF_BGR, TJFLAG_ACCURATEDCT);
  // Some encoders leave stray bytes that every viewer forgives; damage is not a warning.
  if (status != 0 && tjGetErrorCode(decoder) != TJERR_WARNING) {
    throw BrokenImage(StrCat("broken JPEG: ", tjGetErrorStr2(decoder)));
  }
  if (status != 0 && std::string_view(tjGetErrorStr2(decoder)).find("Premature end") != std::string_view::npos) {
    throw BrokenImage("broken JPEG: the file ends too early");
  }
  view.pixels = pixels.data();
  return view;
}

DatumView DatumParser::Impl::DecodeOther(std::string_view image) {
  const cv::Mat bytes(1, static_cast<int>(image.size()), CV_8UC1, const_cast<char*>(image.data()));
  const int flags = color == ColorMode::kColor  ? cv::IMREAD_COLOR
                    : color == ColorMode::kGray ? cv::IMREAD_GRAYSCALE
                                                : cv::IMREAD_ANYCOLOR;
  const cv::Mat decoded = cv::imdecode(bytes, flags);
  if (decoded.empty() || decoded.depth() != CV_8U) {
    throw BrokenImage(StrCat("broken image: ", image.size(), " bytes that no decoder takes"));
  }
  DatumView view;
  view.channels = decoded.channels();
  view.height = decoded.rows;
  view.width = decoded.cols;
  view.is_interleaved = view.channels > 1;
  pixels.assign(decoded.data, decoded.data + decoded.total() * decoded.elemSize());
  view.pixels = pixels.data();
  return view;
}

}  // namespace caffe::data
