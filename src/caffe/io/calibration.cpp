#include "caffe/io/calibration.hpp"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe {
namespace {

using JsonValue = google::protobuf::Value;

constexpr const char* kFormat = "cortado calibration 1";
constexpr double kMostRange = 1e38;
constexpr uint64_t kMostBytes = uint64_t{64} << 20;

// Returns a string member; empty if there is none.
std::string TextOf(const google::protobuf::Struct& object, const char* key) {
  const auto found = object.fields().find(key);
  return found == object.fields().end() ? "" : found->second.string_value();
}

BlobRanges::Range RangeOf(const std::string& file, const std::string& blob,
                          const JsonValue& value) {
  const auto& numbers = value.list_value().values();
  const bool is_pair = numbers.size() == 2 && numbers[0].kind_case() == JsonValue::kNumberValue &&
                       numbers[1].kind_case() == JsonValue::kNumberValue;
  const double lowest = is_pair ? numbers[0].number_value() : 1;
  const double highest = is_pair ? numbers[1].number_value() : -1;
  Require(-kMostRange < lowest && lowest <= 0 && 0 <= highest && highest < kMostRange, file,
          ": the range of blob '", blob, "' should be two numbers, with 0 between them",
          is_pair ? StrCat(", and is ", lowest, " to ", highest) : "");
  return {static_cast<float>(lowest), static_cast<float>(highest)};
}

}  // namespace

BlobRanges ReadCalibration(const std::string& file) {
  google::protobuf::Struct root;
  const auto status =
      google::protobuf::util::JsonStringToMessage(ReadFile(file, kMostBytes), &root);
  Require(status.ok(), file, ": is not a calibration file: ", std::string(status.message()));
  Require(TextOf(root, "format") == kFormat, file,
          ": is not a calibration file, or of another version: its format is '",
          TextOf(root, "format"), "' and should be '", kFormat, "' (caffe calibrate)");
  BlobRanges ranges{.file = file, .net = TextOf(root, "net"), .blobs = {}};
  const auto found = root.fields().find("ranges");
  Require(found != root.fields().end() && found->second.kind_case() == JsonValue::kStructValue,
          file, ": has no ranges; make it again with caffe calibrate");
  for (const auto& [blob, range] : found->second.struct_value().fields())
    ranges.blobs[blob] = RangeOf(file, blob, range);
  return ranges;
}

}  // namespace caffe
