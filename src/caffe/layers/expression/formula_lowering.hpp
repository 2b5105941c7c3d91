// FormulaLowering: emits terms as ops. Reductions divide a formula into stages; the functions of a
// stage that have one shape become one op, which goes through memory once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "caffe/graph_builder.hpp"
#include "caffe/layers/expression/formula_terms.hpp"

namespace caffe {

// A term that a value gets. The term may have a smaller shape and broadcast.
struct FormulaResult {
  int term = -1;
  Value* value = nullptr;
};

class FormulaLowering {
 public:
  // `inputs` are the values of the terms' inputs. `name` distinguishes the values of several
  // lowerings of a layer.
  FormulaLowering(const FormulaTerms& terms, GraphBuilder& graph, std::vector<Value*> inputs,
                  std::string name);

  // Says that a value holds a term's elements, or that they must be put there when they are needed.
  void SetValue(int term, Value* value) { known_[term] = value; }
  void KeepIn(int reduction, Value* value) { kept_[reduction] = value; }

  void Emit(const std::vector<FormulaResult>& results);

 private:
  struct Stage {
    std::vector<FormulaResult> results;  // computed by functions, of any shapes
    std::vector<int> reductions;         // whose operands are there after the previous stage
  };

  void Plan(const std::vector<FormulaResult>& results);
  void EmitReductions(const Stage& stage);
  void EmitFunctions(const std::vector<FormulaResult>& results);
  bool IsKnown(int term) const;

  const FormulaTerms& terms_;
  GraphBuilder& graph_;
  const std::string name_;
  std::map<int, Value*> known_, kept_;
  std::vector<Stage> stages_;
};

}  // namespace caffe
