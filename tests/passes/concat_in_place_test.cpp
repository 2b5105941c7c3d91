// Parts of concatenations and slices share the whole's memory, and the numbers do not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/graph/verifier.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/pointwise.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

std::string Input(const std::string& name, const std::string& dims) {
  return StrCat("layer { name: '", name, "' type: 'Input' top: '", name, "' input_param { shape { ",
                dims, " } } }\n");
}

std::string Product(const std::string& bottom, const std::string& top, int outputs) {
  return StrCat("layer { name: '", top, "' type: 'InnerProduct' bottom: '", bottom, "' top: '", top,
                "' inner_product_param { num_output: ", outputs,
                " weight_filler { type: 'xavier' } bias_filler { type: 'gaussian' } } }\n");
}

std::string Relu(const std::string& blob) {
  return StrCat("layer { name: '", blob, "_relu' type: 'ReLU' bottom: '", blob, "' top: '", blob,
                "' }\n");
}

std::string Concat(const std::vector<std::string>& bottoms, const std::string& top) {
  std::string text = StrCat("layer { name: '", top, "' type: 'Concat' top: '", top, "'");
  for (const std::string& bottom : bottoms) text += StrCat(" bottom: '", bottom, "'");
  return text + " }\n";
}

std::string Halves(const std::string& bottom, const std::string& first, const std::string& second) {
  return StrCat("layer { name: '", bottom, "_cut' type: 'Slice' bottom: '", bottom, "' top: '",
                first, "' top: '", second, "' }\n");
}

const std::string kLoss = Product("last", "ip", 3) +
                          "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: "
                          "'label' top: 'loss' }\n";

std::string Items(int count) {
  return Input("x", StrCat("dim: ", count, " dim: 16")) + Input("label", StrCat("dim: ", count));
}

std::string Branches(int items) {
  return Items(items) + Product("x", "a", 5) + Relu("a") + Product("x", "b", 7) + Relu("b") +
         Concat({"a", "b"}, "last") + kLoss;
}

std::string Heads(int items) {
  const auto convolution = [](const std::string& top, int outputs) {
    return StrCat("layer { name: '", top, "' type: 'Convolution' bottom: 'x' top: '", top,
                  "' convolution_param { num_output: ", outputs,
                  " kernel_size: 3 weight_filler { type: 'msra' } } }\n", Relu(top),
                  "layer { name: 'flat_", top, "' type: 'Flatten' bottom: '", top, "' top: 'flat_",
                  top, "' }\n");
  };
  return Input("x", StrCat("dim: ", items, " dim: 3 dim: 7 dim: 7")) +
         Input("label", StrCat("dim: ", items)) + convolution("a", 4) + convolution("b", 3) +
         Concat({"flat_a", "flat_b"}, "last") + kLoss;
}

std::string Dense() {
  return Items(1) + Product("x", "a", 4) + Product("a", "b", 3) + Concat({"a", "b"}, "ab") +
         Product("ab", "c", 5) + Concat({"ab", "c"}, "last") + kLoss;
}

std::string BottomsThatCannotMove() {
  return Items(1) + Product("x", "a", 4) + Product("x", "kept", 4) +
         Concat({"a", "x", "a"}, "axa") + Concat({"kept", "axa", "a"}, "last") + kLoss;
}

std::string Shuffle() {
  return Items(1) + Product("x", "a", 8) + Halves("a", "first", "second") + Relu("first") +
         Concat({"second", "first"}, "last") + Relu("last") + kLoss;
}

std::unique_ptr<Net> MakeNet(const std::string& text, NetOptions options, Phase phase = TRAIN) {
  NetParameter param;
  ParseTextProto(text, "net", &param);
  param.mutable_state()->set_phase(phase);
  options.seed = 3;
  auto net = std::make_unique<Net>(param, options);
  for (Blob* input : net->input_blobs()) {
    for (int64_t i = 0; i < input->count(); ++i)
      input->mutable_cpu_data()[i] = 2 * ToUniform(RandomStream(4, 1).Bits(i)) - 1;
  }
  Blob& label = *net->blob_by_name("label");
  for (int64_t i = 0; i < label.count(); ++i)
    label.mutable_cpu_data()[i] = static_cast<float>(i % 3);
  return net;
}

// "last = Concat[axis 1, in place](a, b)" for each concatenation and slice.
std::string Schedule(const Net& net) {
  std::string text;
  for (const Node* node : net.graph().ScheduledNodes()) {
    if (node->op.name() != "Concat" && node->op.name() != "SliceOf") continue;
    std::string inputs;
    for (const Value* input : node->inputs) inputs += (inputs.empty() ? "" : ", ") + input->name;
    text += StrCat(node->outputs[0]->name, " = ", node->op.name(), "[", node->op.Attributes(), "](",
                   inputs, ")\n");
  }
  return text;
}

const Value& ValueOf(const Net& net, const std::string& name) {
  for (const Value& value : net.graph().values()) {
    if (value.name == name && value.arena_offset >= 0) return value;
  }
  throw InvalidArgument("no value " + name);
}

std::vector<float> Numbers(Net& net) {
  net.ClearParamDiffs();
  net.ForwardBackward();
  std::vector<float> numbers;
  for (const Blob* output : net.output_blobs())
    numbers.insert(numbers.end(), output->cpu_data(), output->cpu_data() + output->count());
  for (const Net::LearnableParam& param : net.learnable_params()) {
    if (!param.has_gradient) continue;
    const float* diff = param.blob->cpu_diff();
    numbers.insert(numbers.end(), diff, diff + param.blob->count());
  }
  return numbers;
}

TEST(ConcatInPlaceTest, Text) {
  const auto schedule = [](int items, NetOptions options) {
    return Schedule(*MakeNet(Branches(items), std::move(options)));
  };
  const std::string copies =
      "last = Concat[axis 1](a, b)\n"
      "a.diff = SliceOf[axis 1, offset 0](last.diff)\n"
      "b.diff = SliceOf[axis 1, offset 5](last.diff)\n";
  EXPECT_EQ(schedule(1, {.keep_all = false}),
            "last = Concat[axis 1, in place](a, b)\n"
            "a.diff = SliceOf[axis 1, offset 0, in place](last.diff)\n"
            "b.diff = SliceOf[axis 1, offset 5, in place](last.diff)\n");
  EXPECT_EQ(schedule(2, {.keep_all = false}), copies);
  EXPECT_EQ(schedule(1, {.keep_all = true}), copies);
  EXPECT_EQ(schedule(1, {.keep_all = false, .disabled_passes = {"concat-in-place"}}), copies);
}

TEST(ConcatInPlaceTest, PartsLieInTheWhole) {
  // Without this pass, because packed weights would be the largest values of such a small net.
  NetOptions together{.keep_all = false, .disabled_passes = {"keep-weight-copies"}};
  NetOptions separate = together;
  separate.disabled_passes.push_back("concat-in-place");
  const auto net = MakeNet(Heads(1), together);
  const Value &whole = ValueOf(*net, "last"), &a = ValueOf(*net, "flat_a"),
              &b = ValueOf(*net, "flat_b");
  EXPECT_EQ(a.arena_offset, whole.arena_offset);
  EXPECT_EQ(b.arena_offset, whole.arena_offset + static_cast<int64_t>(a.desc.bytes()));
  const auto apart = MakeNet(Heads(1), separate);
  EXPECT_LT(net->graph().arena_bytes, apart->graph().arena_bytes);
}

// The concatenation is read once, but one small part of it is needed until after a larger blob.
// Then the other part gets its own memory.
TEST(ConcatInPlaceTest, PartsLieApartWhereTheWholeWouldBeKeptForThem) {
  std::string text = Items(1) + Product("x", "a", 4) + Product("x", "b", 4000) +
                     Concat({"a", "b"}, "ab") + Product("ab", "h0", 8);
  text += Product("h0", "large", 8000) + Product("large", "h1", 8);
  text += Concat({"h1", "a"}, "last") + kLoss;
  const auto net = MakeNet(text, {.keep_all = false, .with_backward = false}, TEST);
  EXPECT_THAT(Schedule(*net), HasSubstr("ab = Concat[axis 1, in place](a, b)"));
  const Value &whole = ValueOf(*net, "ab"), &a = ValueOf(*net, "a"), &b = ValueOf(*net, "b");
  EXPECT_NE(a.arena_offset, whole.arena_offset);
  EXPECT_EQ(b.arena_offset, whole.arena_offset + static_cast<int64_t>(a.desc.bytes()));
}

struct NetCase {
  std::string name, text;
};

void PrintTo(const NetCase& test, std::ostream* out) {
  *out << test.name;
}

class ConcatInPlaceNetTest : public ::testing::TestWithParam<NetCase> {};

TEST_P(ConcatInPlaceNetTest, KeepsTheNumbers) {
  for (const Precision precision : {FP32, FP64, FP16, BF16}) {
    for (const bool keep_all : {false, true}) {
      const NetOptions options{.keep_all = keep_all, .precision = precision};
      NetOptions without = options;
      without.disabled_passes = {"concat-in-place"};
      const auto shared = MakeNet(GetParam().text, options),
                 apart = MakeNet(GetParam().text, without);
      for (int pass = 0; pass < 2; ++pass)
        EXPECT_EQ(Numbers(*shared), Numbers(*apart)) << Precision_Name(precision);
      EXPECT_LE(shared->graph().arena_bytes, apart->graph().arena_bytes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Nets, ConcatInPlaceNetTest,
    ::testing::Values(NetCase{"Branches", Branches(1)}, NetCase{"BranchesOfTwo", Branches(2)},
                      NetCase{"Heads", Heads(1)}, NetCase{"Dense", Dense()},
                      NetCase{"BottomsThatCannotMove", BottomsThatCannotMove()},
                      NetCase{"Shuffle", Shuffle()}),
    [](const auto& info) { return info.param.name; });

// (x) -> a, (x) -> b, (a, b) -> whole, (a) -> c, (whole) -> d, with the memory places that a test
// gives them.
class PlacedParts {
 public:
  PlacedParts() : graph_(CompileOptions{.keep_all = false}) {
    Value& x = graph_.NewValue("x", Shape{1, 16}, DType::kFloat, ValueKind::kExternal);
    Value &a = Place("a", 16, 0), &b = Place("b", 16, 64), &whole = Place("whole", 32, 0),
          &c = Place("c", 16, 128), &d = Place("d", 32, 192);
    Append(ops::Relu{}, {&x}, {&a});
    Append(ops::Relu{}, {&x}, {&b});
    Append(ops::Concat{.axis = 1, .in_place = true}, {&a, &b}, {&whole});
    Append(ops::Relu{}, {&a}, {&c});
    Append(ops::Relu{}, {&whole}, {&d});
  }

  std::string Error(const std::string& moved, int64_t offset) {
    for (Value& value : graph_.values()) {
      if (value.name == moved) value.arena_offset = offset;
    }
    return testing::ErrorText<InternalError>(
        [&] { VerifyGraph(graph_, "plan-memory", {.memory = true}); });
  }
  void Verify() { VerifyGraph(graph_, "plan-memory", {.memory = true}); }

 private:
  Value& Place(const std::string& name, int64_t count, int64_t offset) {
    Value& value = graph_.NewValue(name, Shape{1, count}, DType::kFloat, ValueKind::kActivation);
    value.arena_offset = offset;
    return value;
  }
  void Append(Op op, std::vector<Value*> inputs, std::vector<Value*> outputs) {
    graph_.Append(std::move(op), std::move(inputs), std::move(outputs)).layers = {0};
  }

  Graph graph_;
};

TEST(VerifierTest, TakesPartsThatLieInTheWholeAndNowhereElse) {
  EXPECT_NO_THROW(PlacedParts().Verify());
  EXPECT_THAT(PlacedParts().Error("a", 64), HasSubstr("'b' overwrites 'a', which is still read"));
  EXPECT_THAT(PlacedParts().Error("a", 32), HasSubstr("overwrites 'a', which is still read"));
  EXPECT_THAT(PlacedParts().Error("whole", 64),
              HasSubstr("'whole' overwrites 'b', which is still read"));
  EXPECT_THAT(PlacedParts().Error("c", 64),
              HasSubstr("'c' overwrites 'whole', which is still read"));
}

}  // namespace
}  // namespace caffe
