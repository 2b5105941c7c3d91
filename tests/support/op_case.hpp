// One use of an op, with random operands: the conformance test runs it on every kernel.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "caffe/ops/kernel.hpp"

namespace caffe::testing {

// Elements in row-major order; empty where the operand is absent.
using Elements = std::vector<double>;

struct CaseOperand {
  Shape shape;
  double low = -1, high = 1;  // range of the values
  bool is_integer = false;    // labels: whole numbers in [low, high]
  bool is_wide = false;       // statistics, masks, parameters: never fewer bits than float
  bool is_present = true;
  bool is_constant = false;      // weights of a net that nobody trains
  std::optional<DType> dtype;    // independent of the case's type
  std::optional<Layout> layout;  // independent of the case's layout
  // Computes element i from the inputs before this one, for operands that are not independent.
  std::function<double(const std::vector<Elements>& before, int64_t i)> value;

  CaseOperand Wide() const {
    return With([](CaseOperand& x) { x.is_wide = true; });
  }
  CaseOperand Constant() const {
    return With([](CaseOperand& x) { x.is_constant = true; });
  }
  CaseOperand In(double low, double high) const {
    return With([&](CaseOperand& x) { x.low = low, x.high = high; });
  }
  CaseOperand Labels(int classes) const {
    return With([&](CaseOperand& x) { x.low = 0, x.high = classes - 1, x.is_integer = true; });
  }
  CaseOperand As(DType type) const {
    return With([&](CaseOperand& x) { x.dtype = type; });
  }
  CaseOperand As(Layout order) const {
    return With([&](CaseOperand& x) { x.layout = order; });
  }

 private:
  template <typename Fn>
  CaseOperand With(Fn change) const {
    CaseOperand copy = *this;
    change(copy);
    return copy;
  }
};

// An operand of a shape, and an operand that is left out.
CaseOperand T(std::vector<int64_t> dims);
CaseOperand Absent();

struct OpCase {
  std::string name;
  Op op;
  std::vector<CaseOperand> inputs, outputs;
  OperandSet accumulates;
  bool CanAccumulate() const;  // outputs that can be added to
  uint64_t pass = 3;
  // Only compiled programs run the op: no layer emits it, and GPUs have no kernel.
  bool is_of_programs = false;

  std::vector<DType> DTypes() const;
  // Plain, and channels-last if the op allows it and the operands have 4 axes.
  std::vector<Layout> Layouts() const;
};

inline void PrintTo(const OpCase& test, std::ostream* out) {
  *out << test.name;
}

// At least one case for each op.
const std::vector<OpCase>& OpCases();

// Input values, and the outputs' values before the op runs; rounded to the types of `dtype`.
struct CaseData {
  std::vector<Elements> inputs, outputs;
};
CaseData MakeData(const OpCase& test, DType dtype);

struct CaseResult {
  std::vector<Elements> outputs;
  std::string algorithm;  // the chosen one, for a vendor's kernel
};

// The devices that this build has kernels for, whether or not the machine has them.
std::vector<DeviceKind> BuiltDevices();
// The name of a device kind in test names.
std::string TitleOf(DeviceKind kind);

// The device of a kind, or null after saying why this machine has none.
Device* DeviceOrNull(DeviceKind kind);

// Runs one kernel on its device; `refusal` gets the reason if it does not support the request.
std::optional<CaseResult> RunCase(const OpCase& test, Device& device,
                                  const KernelCandidate& candidate, DType dtype, Layout layout,
                                  bool accumulates, const CaseData& data, int runs,
                                  std::string* refusal);

// Cases with the sizes of real nets, for MeasureCase.
const std::vector<OpCase>& SpeedCases();

struct CaseSpeed {
  double seconds = 0;           // per run
  double bytes = 0, flops = 0;  // bytes of all operands; operations of the op
};

// Returns nothing if the kernel does not support the request.
std::optional<CaseSpeed> MeasureCase(const OpCase& test, Device& device,
                                     const KernelCandidate& candidate, DType dtype, Layout layout);

// The results of the op's reference kernel in double on plain tensors.
std::vector<Elements> RunReference(const OpCase& test, bool accumulates, const CaseData& data);

// The coarsest type that an operand has when the case runs in `dtype`.
DType CoarsestType(const OpCase& test, DType dtype);

}  // namespace caffe::testing
