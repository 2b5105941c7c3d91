// Compares caffe.proto with the fields of BVLC Caffe and NVCaffe: schema.tsv and enums.tsv hold
// every field and enum value of both as facts (name, number, label, type, default, packed). A field
// that differs between them is listed twice.
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"
#include "tests/support/folders.hpp"

namespace caffe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

constexpr int kOwnNumbers = 20000;  // fields from here on are ours
// The same for layers, where plug-ins have numbers from 10000 on.
constexpr int kOwnNumbersOfLayers = 9000;

// One row of schema.tsv.
struct Row {
  std::string message, field, number, label, type, default_value, packed;
};

std::vector<std::vector<std::string>> ReadTable(const std::string& name, size_t columns) {
  std::ifstream file(testing::SourcePath("tests/io/" + std::string(name)));
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(file, line);  // column names
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, '\t');) cells.push_back(cell);
    cells.resize(columns);
    rows.push_back(cells);
  }
  return rows;
}

// If BVLC and NVCaffe disagree, one of the two rows does not apply to us.
bool IsOverruled(const Row& row) {
  static const std::set<std::string> kOverruled = {
      "BatchNormParameter.use_global_stats=false",  // absent means "in testing"
      "DataParameter.prefetch=0",                   // BVLC's 4 holds
      "SolverParameter.test_initialization=false",  // BVLC's true holds
  };
  return kOverruled.count(row.message + "." + row.field + "=" + row.default_value) > 0;
}

// NVCaffe keeps the numbers that both use; BVLC's fields have these instead.
std::string OurNumber(const Row& row) {
  static const std::map<std::string, std::string> kMoved = {
      {"LayerParameter.parameter_param", "1145"},    {"LayerParameter.recurrent_param", "151"},
      {"LayerParameter.swish_param", "1147"},        {"LayerParameter.clip_param", "1148"},
      {"SolverParameter.layer_wise_reduce", "1041"}, {"SolverParameter.weights", "1042"},
  };
  const auto moved = kMoved.find(row.message + "." + row.field);
  return moved == kMoved.end() ? row.number : moved->second;
}

std::string WithoutPackage(const std::string& full_name) {
  return full_name.substr(6);
}

std::string TypeOf(const FieldDescriptor* field) {
  if (field->message_type()) return WithoutPackage(field->message_type()->full_name());
  if (field->enum_type()) return WithoutPackage(field->enum_type()->full_name());
  return field->type_name();
}

std::string LabelOf(const FieldDescriptor* field) {
  return field->is_repeated() ? "repeated" : field->is_required() ? "required" : "optional";
}

void ExpectDefault(const FieldDescriptor* field, const std::string& expected) {
  ASSERT_EQ(field->has_default_value(), !expected.empty());
  if (expected.empty()) return;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_FLOAT:
      EXPECT_EQ(field->default_value_float(), std::stof(expected));
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      EXPECT_EQ('"' + field->default_value_string() + '"', expected);
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      EXPECT_EQ(field->default_value_enum()->name(), expected);
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      EXPECT_EQ(field->default_value_bool(), expected == "true");
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      EXPECT_EQ(field->default_value_int32(), std::stoi(expected));
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      EXPECT_EQ(field->default_value_uint32(), std::stoul(expected));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      EXPECT_EQ(field->default_value_int64(), std::stoll(expected));
      break;
    default:
      FAIL() << "no field of this type has a default";
  }
}

std::vector<Row> SchemaRows() {
  std::vector<Row> rows;
  for (const auto& cells : ReadTable("schema.tsv", 7)) {
    rows.push_back({cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6]});
  }
  return rows;
}

void CollectMessages(const Descriptor* message, std::vector<const Descriptor*>* messages) {
  messages->push_back(message);
  for (int i = 0; i < message->nested_type_count(); ++i) {
    CollectMessages(message->nested_type(i), messages);
  }
}

TEST(SchemaTest, HasEveryFieldOfBothForks) {
  const DescriptorPool* pool = DescriptorPool::generated_pool();
  NetParameter::descriptor();
  const std::vector<Row> rows = SchemaRows();
  ASSERT_EQ(rows.size(), 722u);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.message + "." + row.field);
    if (IsOverruled(row)) continue;
    const FieldDescriptor* field = pool->FindFieldByName("caffe." + row.message + "." + row.field);
    ASSERT_NE(field, nullptr);
    EXPECT_EQ(std::to_string(field->number()), OurNumber(row));
    EXPECT_EQ(LabelOf(field), row.label);
    EXPECT_EQ(TypeOf(field), row.type);
    EXPECT_EQ(field->is_packed(), row.packed == "1");
    ExpectDefault(field, row.default_value);
  }
}

TEST(SchemaTest, HasNoOtherFieldBelowItsOwnNumbers) {
  std::set<const Descriptor*> own_messages = {DataCursor::descriptor(),
                                              GradientScaleState::descriptor(),
                                              UserConfig::descriptor(), FlagDefault::descriptor()};
  std::set<std::string> known;
  for (const Row& row : SchemaRows()) known.insert(row.message + "." + row.field);
  const FileDescriptor* file = NetParameter::descriptor()->file();
  std::vector<const Descriptor*> messages;
  for (int i = 0; i < file->message_type_count(); ++i) {
    CollectMessages(file->message_type(i), &messages);
  }
  const auto is_of_forks = [](const FieldDescriptor& field) {
    const bool is_ceil_mode = field.full_name() == "caffe.PoolingParameter.ceil_mode";
    return is_ceil_mode || (field.containing_type() == LayerParameter::descriptor() &&
                            field.number() >= 2001 && field.number() <= 2999);
  };
  // Messages that only our own fields use are entirely ours.
  for (const Descriptor* message : messages) {
    for (int i = 0; i < message->field_count(); ++i) {
      const FieldDescriptor* field = message->field(i);
      const bool is_own = field->number() >= kOwnNumbers || is_of_forks(*field);
      const bool is_known = known.count(WithoutPackage(field->full_name())) > 0;
      if (is_own && !is_known && field->message_type() != nullptr)
        own_messages.insert(field->message_type());
    }
  }
  for (const Descriptor* message : messages) {
    if (own_messages.count(message) != 0) continue;
    for (int i = 0; i < message->field_count(); ++i) {
      const FieldDescriptor* field = message->field(i);
      const bool is_of_layer = message == LayerParameter::descriptor();
      if (field->number() >= (is_of_layer ? kOwnNumbersOfLayers : kOwnNumbers)) continue;
      if (is_of_forks(*field)) continue;
      EXPECT_EQ(known.count(WithoutPackage(field->full_name())), 1u) << field->full_name();
    }
  }
}

TEST(SchemaTest, HasEveryEnumValueOfBothForks) {
  const DescriptorPool* pool = DescriptorPool::generated_pool();
  const auto rows = ReadTable("enums.tsv", 3);
  ASSERT_EQ(rows.size(), 181u);
  for (const auto& row : rows) {
    SCOPED_TRACE(row[0] + "." + row[1]);
    const EnumDescriptor* type = pool->FindEnumTypeByName("caffe." + row[0]);
    ASSERT_NE(type, nullptr);
    const auto* value = type->FindValueByName(row[1]);
    ASSERT_NE(value, nullptr);
    EXPECT_EQ(std::to_string(value->number()), row[2]);
  }
}

TEST(SchemaTest, KeepsItsOwnFieldsApart) {
  EXPECT_EQ(NetParameter::descriptor()->FindFieldByName("dialect")->number(), 20000);
  EXPECT_EQ(SolverParameter::descriptor()->FindFieldByName("dialect")->number(), 20000);
  EXPECT_EQ(SolverState::descriptor()->FindFieldByName("random_seed")->number(), 20000);
  EXPECT_EQ(SolverState::descriptor()->FindFieldByName("data_cursor")->number(), 20001);
  EXPECT_EQ(SolverState::descriptor()->FindFieldByName("solver_type")->number(), 20002);
  EXPECT_EQ(SolverState::descriptor()->FindFieldByName("net_name")->number(), 20003);
  EXPECT_EQ(NetParameter().dialect(), AUTO);
}

}  // namespace
}  // namespace caffe
