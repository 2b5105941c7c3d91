#include "caffe/layers/expression/formula_lowering.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "caffe/error.hpp"

namespace caffe {
namespace {

using ops::Formula;

// The functions that some results need, as one op.
class FormulaAssembly {
 public:
  FormulaAssembly(const FormulaTerms& terms, const std::map<int, Value*>& known,
                  const std::vector<FormulaResult>& results)
      : terms_(terms),
        last_use_(static_cast<size_t>(terms.size()), -1),
        is_condition_(static_cast<size_t>(terms.size()), true) {
    std::vector<bool> is_needed(static_cast<size_t>(terms.size()));
    for (const FormulaResult& result : results) {
      is_needed[At(result.term)] = true;
      is_condition_[At(result.term)] = false;
      last_use_[At(result.term)] = kForever;
    }
    for (int i = terms.size() - 1; i >= 0; --i) {
      if (!is_needed[At(i)]) continue;
      const FormulaTerm& term = terms[i];
      if (term.kind == FormulaTerm::Kind::kNumber) {
        numbers_.push_back(i);
      } else if (known.contains(i)) {
        inputs_.push_back(i);
      } else {
        functions_.push_back(i);
        for (int k = 0; k < term.num_operands(); ++k) {
          const int operand = term.operands[static_cast<size_t>(k)];
          is_needed[At(operand)] = true;
          if (k > 0 || term.code != ops::FormulaCode::kWhere) is_condition_[At(operand)] = false;
          last_use_[At(operand)] = std::max(last_use_[At(operand)], i);
        }
      }
    }
    std::ranges::reverse(functions_);
  }

  // `inputs` receives the terms of its inputs.
  Formula Assemble(const Shape& shape, const std::vector<FormulaResult>& results,
                   std::vector<int>* inputs) {
    // Whole tensors come first, because an op's first input has the type of its result. Conditions
    // keep their own types: they come last.
    const auto rank = [&](int input) {
      return std::tuple(is_condition_[At(input)], terms_.shape(input) != shape, input);
    };
    std::ranges::sort(inputs_, {}, rank);
    CheckCount("operands", std::max(inputs_.size(), results.size()), ops::kMaxFormulaOperands);
    CheckCount("numbers", numbers_.size(), ops::kMaxFormulaConstants);
    CheckCount("functions", functions_.size(), ops::kMaxFormulaSteps);
    Formula op;
    for (const int input : inputs_) {
      if (terms_.shape(input) == shape) op.whole_inputs |= uint64_t{1} << slots_.size();
      if (is_condition_[At(input)] && input != inputs_[0])
        op.conditions |= uint64_t{1} << slots_.size();
      slots_[input] = static_cast<int>(slots_.size());
    }
    op.inputs = static_cast<uint8_t>(inputs_.size());
    for (const int number : numbers_) {
      slots_[number] = static_cast<int>(slots_.size());
      op.constants.push_back(terms_[number].number);
    }
    first_register_ = op.first_register();
    for (const int function : functions_) op.steps.push_back(StepOf(function));
    CheckCount("intermediate results", static_cast<size_t>(first_register_ + registers_),
               ops::kMaxFormulaSlots);
    op.registers = static_cast<uint8_t>(registers_);
    for (const FormulaResult& result : results) op.results.push_back(Slot(result.term));
    *inputs = inputs_;
    return op;
  }

 private:
  static constexpr int kForever = std::numeric_limits<int>::max();

  static size_t At(int term) { return static_cast<size_t>(term); }
  static void CheckCount(const char* what, size_t has, int most) {
    Require(has <= static_cast<size_t>(most), "expr: the formula, or its gradient, needs ", has,
            " ", what, " at once; at most ", most, " are possible; divide it over several layers");
  }
  uint8_t Slot(int term) const { return static_cast<uint8_t>(slots_.at(term)); }

  // An operand's slot is free after its last use, but the instruction must not write it yet.
  Formula::Step StepOf(int function) {
    const FormulaTerm& term = terms_[function];
    const uint8_t a = Slot(term.operands[0]);
    Formula::Step step{term.code, 0, a, a, a};
    if (term.num_operands() > 1) step.b = Slot(term.operands[1]);
    if (term.num_operands() > 2) step.c = Slot(term.operands[2]);
    if (free_.empty()) {
      slots_[function] = first_register_ + registers_++;
    } else {
      slots_[function] = free_.back();
      free_.pop_back();
    }
    step.to = Slot(function);
    for (int k = 0; k < term.num_operands(); ++k) {
      const int operand = term.operands[static_cast<size_t>(k)];
      if (last_use_[At(operand)] != function || slots_[operand] < first_register_) continue;
      last_use_[At(operand)] = kForever;  // freed once, if it is the operand twice
      free_.push_back(slots_[operand]);
    }
    return step;
  }

  const FormulaTerms& terms_;
  std::vector<int> inputs_, numbers_, functions_, last_use_, free_;
  std::vector<bool> is_condition_;  // of the inputs: nothing but the first operand of where
  std::map<int, int> slots_;
  int first_register_ = 0, registers_ = 0;
};

}  // namespace

FormulaLowering::FormulaLowering(const FormulaTerms& terms, GraphBuilder& graph,
                                 std::vector<Value*> inputs, std::string name)
    : terms_(terms), graph_(graph), name_(std::move(name)) {
  for (int i = 0; i < terms.size(); ++i) {
    if (terms[i].kind == FormulaTerm::Kind::kInput)
      known_[i] = inputs[static_cast<size_t>(terms[i].input)];
  }
}

bool FormulaLowering::IsKnown(int term) const {
  return known_.contains(term);
}

// A term belongs to the stage after the last reduction on the way to it.
void FormulaLowering::Plan(const std::vector<FormulaResult>& results) {
  std::vector<bool> is_needed(static_cast<size_t>(terms_.size()));
  for (const FormulaResult& result : results) is_needed[static_cast<size_t>(result.term)] = true;
  for (int i = terms_.size() - 1; i >= 0; --i) {
    if (!is_needed[static_cast<size_t>(i)] || IsKnown(i)) continue;
    for (int k = 0; k < terms_[i].num_operands(); ++k)
      is_needed[static_cast<size_t>(terms_[i].operands[static_cast<size_t>(k)])] = true;
  }
  std::vector<size_t> stage_of(static_cast<size_t>(terms_.size()));
  for (int i = 0; i < terms_.size(); ++i) {
    if (!is_needed[static_cast<size_t>(i)] || IsKnown(i)) continue;
    const FormulaTerm& term = terms_[i];
    size_t stage = 0;
    for (int k = 0; k < term.num_operands(); ++k)
      stage = std::max(stage, stage_of[static_cast<size_t>(term.operands[static_cast<size_t>(k)])]);
    if (term.kind == FormulaTerm::Kind::kReduction) ++stage;
    stage_of[static_cast<size_t>(i)] = stage;
    if (stages_.size() <= stage) stages_.resize(stage + 1);
    if (term.kind != FormulaTerm::Kind::kReduction) continue;
    stages_[stage].reductions.push_back(i);
    const int operand = term.operands[0];
    auto& before = stages_[stage_of[static_cast<size_t>(operand)]].results;
    const bool is_there = std::ranges::find(before, operand, &FormulaResult::term) != before.end();
    if (IsKnown(operand) || terms_[operand].kind == FormulaTerm::Kind::kReduction || is_there)
      continue;
    before.push_back({operand, graph_.Scratch(StrCat(name_, "_of_", i), terms_.shape(operand),
                                              SavedAs::kExact)});
  }
  if (stages_.empty()) stages_.resize(1);
  for (const FormulaResult& result : results)
    stages_[stage_of[static_cast<size_t>(result.term)]].results.push_back(result);
}

void FormulaLowering::Emit(const std::vector<FormulaResult>& results) {
  Plan(results);
  for (const Stage& stage : stages_) {
    EmitReductions(stage);
    std::vector<std::vector<FormulaResult>> groups;  // of one shape each
    for (const FormulaResult& result : stage.results) {
      // A reduction that is a result was put there at once.
      if (IsKnown(result.term) && known_.at(result.term) == result.value) continue;
      const Shape& shape = graph_.shape(result.value);
      const auto found = std::ranges::find_if(
          groups, [&](const auto& group) { return graph_.shape(group[0].value) == shape; });
      found == groups.end() ? groups.push_back({result}) : found->push_back(result);
    }
    for (const std::vector<FormulaResult>& group : groups) EmitFunctions(group);
    for (const std::vector<FormulaResult>& group : groups) {
      for (const FormulaResult& result : group) {
        if (terms_.shape(result.term) == graph_.shape(result.value))
          known_.try_emplace(result.term, result.value);
      }
    }
  }
}

void FormulaLowering::EmitReductions(const Stage& stage) {
  for (const int i : stage.reductions) {
    Value* value = nullptr;
    for (const FormulaResult& result : stage.results) {
      if (result.term == i && graph_.shape(result.value) == terms_.shape(i)) value = result.value;
    }
    if (value == nullptr && kept_.contains(i)) value = kept_.at(i);
    if (value == nullptr)
      value = graph_.Scratch(StrCat(name_, "_", i), terms_.shape(i), SavedAs::kExact);
    graph_.Emit(ops::ReduceAxes{terms_[i].reduction}, {known_.at(terms_[i].operands[0])}, {value});
    known_[i] = value;
  }
}

void FormulaLowering::EmitFunctions(const std::vector<FormulaResult>& results) {
  std::vector<int> terms;
  const Shape& shape = graph_.shape(results[0].value);
  Formula op = FormulaAssembly(terms_, known_, results).Assemble(shape, results, &terms);
  std::vector<TensorDesc> descs;
  std::vector<Value*> inputs, outputs;
  for (const int term : terms) {
    inputs.push_back(known_.at(term));
    descs.push_back({terms_.shape(term)});
  }
  for (const FormulaResult& result : results) outputs.push_back(result.value);
  static_cast<void>(ops::SharedAxes({shape}, descs));  // throws if there are too many axes
  graph_.Emit(std::move(op), std::move(inputs), std::move(outputs));
}

}  // namespace caffe
