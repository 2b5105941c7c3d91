#include "caffe/runs/event_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/crc.hpp>
#include <cmath>
#include <map>

#include "caffe/error.hpp"
#include "caffe/io/utf8.hpp"
#include "caffe/runs/host_name.hpp"
#include "caffe/runs/metrics.hpp"

namespace caffe::runs {
namespace {

constexpr int kBuckets = 64;

// CRC32C, masked as TensorFlow does, so that it can be part of checksummed data.
uint32_t MaskedCrc(const std::string& bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const uint32_t sum = crc.checksum();
  return ((sum >> 15) | (sum << 17)) + 0xA282EAD8u;
}

// Little-endian.
template <typename Number>
std::string Bytes(Number number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(number); ++i) bytes += static_cast<char>(number >> (8 * i) & 0xFF);
  return bytes;
}

std::string FileName(const std::string& folder) {
  return StrCat(folder, "/events.out.tfevents.", static_cast<int64_t>(SecondsNow()), ".",
                HostName(), ".", getpid());
}

void AddScalar(const std::string& tag, double number, Summary* summary) {
  Summary::Value& value = *summary->add_value();
  value.set_tag(tag);
  value.set_simple_value(static_cast<float>(number));
}

}  // namespace

EventFile::EventFile(const std::string& folder) : file_(FileName(folder)) {
  Event version;
  version.set_wall_time(SecondsNow());
  version.set_file_version("brain.Event:2");
  Append(version);
}

void EventFile::Append(Event event) {
  MakeUtf8(&event);
  const std::string body = event.SerializeAsString();
  const std::string length = Bytes<uint64_t>(body.size());
  file_.Append(length + Bytes(MaskedCrc(length)) + body + Bytes(MaskedCrc(body)));
}

// Each layer is a node, and its inputs are the layers that last wrote its bottoms.
Event GraphEvent(double time, const NetParameter& net) {
  GraphDef graph;
  graph.mutable_versions()->set_producer(22);
  std::map<std::string, std::string> writers;
  for (const LayerParameter& layer : net.layer()) {
    Node& node = *graph.add_node();
    node.set_name(layer.name());
    node.set_op(layer.type());
    for (const std::string& bottom : layer.bottom()) node.add_input(writers[bottom]);
    for (const std::string& top : layer.top()) writers[top] = layer.name();
  }
  Event event;
  event.set_wall_time(time);
  MakeUtf8(&graph);
  event.set_graph_def(graph.SerializeAsString());
  return event;
}

Event StartEvent(double time, int step) {
  Event event;
  event.set_wall_time(time);
  event.set_step(step);
  event.mutable_session_log()->set_status(SessionLog::START);
  return event;
}

Event ScalarEvent(const Metrics& metrics, bool has_several_tests) {
  Event event;
  event.set_wall_time(metrics.time());
  event.set_step(metrics.iteration());
  Summary& summary = *event.mutable_summary();
  const std::string folder =
      metrics.event() + (has_several_tests && metrics.has_net() ? StrCat(metrics.net()) : "") + "/";
  const google::protobuf::Descriptor& fields = *metrics.GetDescriptor();
  const google::protobuf::Reflection& numbers = *metrics.GetReflection();
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = fields.field(i);
    if (!field->has_presence() || !numbers.HasField(metrics, field)) continue;
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_FLOAT) {
      AddScalar(folder + field->name(), numbers.GetFloat(metrics, field), &summary);
    }
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE) {
      AddScalar(folder + field->name(), numbers.GetDouble(metrics, field), &summary);
    }
  }
  for (const auto& [name, number] : metrics.outputs()) {
    // "loss" is also the name of the only output of most nets.
    if (name != "loss") AddScalar(folder + name, number, &summary);
  }
  return event;
}

Summary::Value HistogramOf(const std::string& tag, const float* values, int64_t count) {
  std::vector<double> finite;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isfinite(values[i])) finite.push_back(values[i]);
  }
  Summary::Value result;
  result.set_tag(tag);
  Histogram& histogram = *result.mutable_histo();
  if (finite.empty()) return result;
  const auto [least, most] = std::minmax_element(finite.begin(), finite.end());
  // The last limit is above all values, even if all are equal.
  const double range = std::max({*most - *least, 1e-6 * std::abs(*least), 1e-12});
  const double width = range / kBuckets;
  std::array<double, kBuckets> buckets = {};
  double sum = 0, sum_squares = 0;
  for (const double value : finite) {
    ++buckets[std::min(static_cast<int>((value - *least) / width), kBuckets - 1)];
    sum += value;
    sum_squares += value * value;
  }
  histogram.set_min(*least);
  histogram.set_max(*most);
  histogram.set_num(static_cast<double>(finite.size()));
  histogram.set_sum(sum);
  histogram.set_sum_squares(sum_squares);
  for (int i = 0; i < kBuckets; ++i) {
    histogram.add_bucket_limit(*least + width * (i + 1));
    histogram.add_bucket(buckets[i]);
  }
  return result;
}

}  // namespace caffe::runs
