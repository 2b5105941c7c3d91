#include "caffe/ops/steps_in_turn.hpp"

#include <array>

#include "caffe/ops/activations.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/lstm_unit.hpp"
#include "caffe/ops/pointwise.hpp"
#include "caffe/ops/step_region.hpp"

namespace caffe::ops {
namespace {

using Place = Fused::Place;

constexpr ScaleShift kScaleItems{{.axis = 0, .num_axes = 1}};

// Adds ops whose results are new tensors of the step. Products are computed in the type of the
// data, everything else in the wide type.
class StepOps {
 public:
  StepOps(const Recurrence& sizes, bool is_gradient, const KernelRequest& request)
      : step(sizes, is_gradient, request), sizes_(sizes), type(step.type()), wide(step.wide()) {}

  // Results (N,D) in the wide type, and of any form. D is the width, P that of h.
  Place Wide(Op op, std::vector<Place> inputs) {
    return Result(std::move(op), std::move(inputs), sizes_.width, wide);
  }
  Place Result(Op op, std::vector<Place> inputs, int64_t columns, DType as) {
    const Place place = step.Inner(columns, as);
    step.Add(std::move(op), std::move(inputs), {place});
    return place;
  }
  // The state that the step reads, scaled by cont.
  Place Hidden(const StepTensor& h, int initial, Place cont) {
    return Result(kScaleItems, {step.Reads(step.Before(h, initial), type), cont}, sizes_.h_width(),
                  type);
  }
  // a weights^T, with a (N,P) and weights (columns,P).
  Place Times(Place a, int weights, int64_t columns) {
    return Result(Gemm{.rows = sizes_.items,
                       .columns = columns,
                       .inner = sizes_.h_width(),
                       .transpose_b = true},
                  {a, step.Reads(step.Whole(weights), type)}, columns, type);
  }
  // products + a weights^T in the wide type.
  Place GateInputs(Place products, Place a, int weights, int64_t columns) {
    const Place product = Times(a, weights, columns);
    const Place sum = Result(EltwiseSum{}, {products, product}, columns, type);
    return Result(Cast{}, {sum}, columns, wide);
  }
  // dy weights, with dy (N,inner) and weights (inner,columns): the gradient of a, in the wide type.
  Place TimesBack(Place dy, int weights, int64_t inner, int64_t columns) {
    const Place product = Result(Gemm{.rows = sizes_.items, .columns = columns, .inner = inner},
                                 {dy, step.Reads(step.Whole(weights), type)}, columns, type);
    return Result(Cast{}, {product}, columns, wide);
  }
  Place Product(Place a, Place b) { return Wide(EltwiseProd{}, {a, b}); }
  Place Difference(Place a, Place b) { return Wide(EltwiseSum{.coefficients = {1, -1}}, {a, b}); }
  // Stores a result of the width; returns it as it is stored.
  Place Store(Place x, int output, DType as) {
    const Place to = step.Writes(step.Output(output, sizes_.width, as), as);
    step.Add(Cast{}, {x}, {to});
    return to;
  }
  // The gradient of h in the wide type: from its readers outside, and from the step after it.
  Place SumOfGradients(int dh, const StepTensor& carried) {
    const Place from_step = step.Reads(carried, wide);
    if (!step.has_input(dh)) return from_step;
    const int64_t columns = sizes_.h_width();
    const Place from_readers = Result(Cast{}, {step.Reads(step.Input(dh), type)}, columns, wide);
    return Result(EltwiseSum{}, {from_readers, from_step}, columns, wide);
  }

  StepRegion step;

 private:
  const Recurrence sizes_;

 public:
  const DType type, wide;
};

}  // namespace

KernelOrRefusal MakeLstmInTurn(const LstmSteps& op, const KernelRequest& request) {
  StepOps ops(op, /*is_gradient=*/false, request);
  StepRegion& step = ops.step;
  const int64_t width = op.width, gates = 4 * width;
  const StepTensor h = step.Output(op.kH, op.h_width(), ops.type);
  const StepTensor c = step.Output(op.kC, width, ops.wide);
  const Place cont = step.Reads(step.Cont(op.kCont), ops.wide);
  const Place products = step.Reads(step.Input(op.kProducts), ops.type);
  const Place sums = ops.GateInputs(products, ops.Hidden(h, op.kH0, cont), op.kWeights, gates);
  step.Add(Cast{}, {sums}, {step.Writes(step.Output(op.kGates, gates, ops.wide), ops.wide)});
  const Place wide_units = step.Inner(width, ops.wide);
  step.Add(LstmUnit{}, {step.Reads(step.Before(c, op.kC0), ops.wide), sums, cont},
           {step.Writes(c, ops.wide), wide_units});
  const bool projects = op.projection > 0;
  const Place units = step.Writes(projects ? step.Output(op.kUnits, width, ops.type) : h, ops.type);
  step.Add(Cast{}, {wide_units}, {units});
  if (projects) {
    step.Add(Gemm{.rows = op.items, .columns = op.projection, .inner = width, .transpose_b = true},
             {units, step.Reads(step.Whole(op.kProjection), ops.type)}, {step.Writes(h, ops.type)});
  }
  step.KeepLast(h, op.kHLast);
  step.KeepLast(c, op.kCLast);
  return step.Finish();
}

KernelOrRefusal MakeLstmGradInTurn(const LstmStepsGrad& op, const KernelRequest& request) {
  StepOps ops(op, /*is_gradient=*/true, request);
  StepRegion& step = ops.step;
  const int64_t width = op.width, gates = 4 * width;
  const auto [dh_read, dh_written] = step.Carried(op.h_width(), ops.wide, op.kDhLast);
  const auto [dc_read, dc_written] = step.Carried(width, ops.wide, op.kDcLast);
  const StepTensor c = step.Input(op.kC);
  const Place cont = step.Reads(step.Cont(op.kCont), ops.wide);
  step.Add(Cast{}, {ops.Hidden(step.Input(op.kH), op.kH0, cont)},
           {step.Writes(step.Output(op.kHidden, op.h_width(), ops.type), ops.type)});
  Place dunits = ops.SumOfGradients(op.kDh, dh_read);
  if (op.projection > 0) {
    const Place dprojected =
        step.Writes(step.Output(op.kDProjected, op.projection, ops.type), ops.type);
    step.Add(Cast{}, {dunits}, {dprojected});
    dunits = ops.TimesBack(dprojected, op.kProjection, op.projection, width);
  }
  const Place wide_dgates = step.Inner(gates, ops.wide);
  step.Add(
      LstmUnitGrad{},
      {step.Reads(step.Before(c, op.kC0), ops.wide), step.Reads(step.Input(op.kGates), ops.wide),
       cont, step.Reads(c, ops.wide), step.Reads(dc_read, ops.wide), dunits},
      {step.Writes(dc_written, ops.wide), wide_dgates});
  const float most = op.clipping_threshold;
  const Place limited =
      most == 0 ? wide_dgates : ops.Result(Clip(-most, most), {wide_dgates}, gates, ops.wide);
  const Place dgates = step.Writes(step.Output(op.kDGates, gates, ops.type), ops.type);
  step.Add(Cast{}, {limited}, {dgates});
  step.Add(kScaleItems, {ops.TimesBack(dgates, op.kWeights, gates, op.h_width()), cont},
           {step.Writes(dh_written, ops.wide)});
  step.KeepLast(dh_written, op.kDh0);
  step.KeepLast(dc_written, op.kDc0);
  return step.Finish();
}

KernelOrRefusal MakeGruInTurn(const GruSteps& op, const KernelRequest& request) {
  StepOps ops(op, /*is_gradient=*/false, request);
  StepRegion& step = ops.step;
  const int64_t width = op.width;
  const StepTensor h = step.Output(op.kH, width, ops.type);
  const Place products = step.Reads(step.Input(op.kProducts), ops.type);
  const Place hidden = ops.Hidden(h, op.kH0, step.Reads(step.Cont(op.kCont), ops.wide));
  const Place wide_hidden = ops.Wide(Cast{}, {hidden});
  // Gate `i`, given what is fed back to it.
  const auto gate = [&](int i, Op function, Place fed) {
    const Place x =
        ops.Result(SliceOf{.axis = 1, .offset = i * width}, {products}, width, ops.type);
    const Place y = ops.Wide(std::move(function), {ops.GateInputs(x, fed, op.kWeights + i, width)});
    ops.Store(y, op.kGates + i, ops.wide);
    return y;
  };
  const Place z = gate(0, Sigmoid{}, hidden), r = gate(1, Sigmoid{}, hidden);
  const Place reset = ops.Result(Cast{}, {ops.Product(r, wide_hidden)}, width, ops.type);
  const Place n = gate(2, Tanh{}, reset);
  const Place kept = ops.Product(z, ops.Difference(wide_hidden, n));
  step.Add(Cast{}, {ops.Wide(EltwiseSum{}, {n, kept})}, {step.Writes(h, ops.type)});
  step.KeepLast(h, op.kHLast);
  return step.Finish();
}

KernelOrRefusal MakeGruGradInTurn(const GruStepsGrad& op, const KernelRequest& request) {
  StepOps ops(op, /*is_gradient=*/true, request);
  StepRegion& step = ops.step;
  const int64_t width = op.width;
  const auto [dh_read, dh_written] = step.Carried(width, ops.wide, op.kDhLast);
  const Place cont = step.Reads(step.Cont(op.kCont), ops.wide);
  const Place hidden = ops.Hidden(step.Input(op.kH), op.kH0, cont);
  const Place wide_hidden = ops.Wide(Cast{}, {hidden});
  std::array<Place, 3> gates;
  for (int i = 0; i < 3; ++i) gates[i] = step.Reads(step.Input(op.kGates + i), ops.wide);
  const auto [z, r, n] = gates;
  // Stores the gradient of a gate's input, and returns that of what was fed back to it.
  const auto back = [&](int i, Op function, Place dgate) {
    const Place d = ops.Wide(std::move(function), {gates[i], dgate});
    return ops.TimesBack(ops.Store(d, op.kDGates + i, ops.type), op.kWeights + i, width, width);
  };
  ops.Store(hidden, op.kHidden, ops.type);
  ops.Store(ops.Product(r, wide_hidden), op.kReset, ops.type);
  const Place dh = ops.SumOfGradients(op.kDh, dh_read);
  const Place kept = ops.Product(dh, z);
  const Place dreset = back(2, TanhGrad{}, ops.Difference(dh, kept));
  const Place from_z = back(0, SigmoidGrad{}, ops.Product(dh, ops.Difference(wide_hidden, n)));
  const Place from_r = back(1, SigmoidGrad{}, ops.Product(dreset, wide_hidden));
  const Place dhidden = ops.Wide(EltwiseSum{}, {kept, ops.Product(dreset, r), from_z, from_r});
  step.Add(kScaleItems, {dhidden, cont}, {step.Writes(dh_written, ops.wide)});
  step.KeepLast(dh_written, op.kDh0);
  return step.Finish();
}

KernelOrRefusal MakeGruResetAfterInTurn(const GruResetAfterSteps& op,
                                        const KernelRequest& request) {
  StepOps ops(op, /*is_gradient=*/false, request);
  StepRegion& step = ops.step;
  const int64_t width = op.width;
  const StepTensor h = step.Output(op.kH, width, ops.type);
  const Place products = step.Reads(step.Input(op.kProducts), ops.type);
  const Place hidden = ops.Hidden(h, op.kH0, step.Reads(step.Cont(op.kCont), ops.wide));
  const auto part = [&](int i) {
    return ops.Result(SliceOf{.axis = 1, .offset = i * width}, {products}, width, ops.type);
  };
  const auto gate = [&](int i, Op function, Place inputs) {
    const Place y = ops.Wide(std::move(function), {inputs});
    ops.Store(y, op.kGates + i, ops.wide);
    return y;
  };
  const auto inputs = [&](int i) {
    return ops.GateInputs(part(i), hidden, op.kWeights + i, width);
  };
  const Place z = gate(0, Sigmoid{}, inputs(0)), r = gate(1, Sigmoid{}, inputs(1));
  const Place biases =
      ops.Wide(Tile{.axis = 0, .tiles = op.items}, {step.Reads(step.Whole(op.kBias), ops.wide)});
  const Place product = ops.Wide(Cast{}, {ops.Times(hidden, op.kWeights + 2, width)});
  const Place fed = ops.Wide(EltwiseSum{}, {product, biases});
  ops.Store(fed, op.kFed, ops.wide);
  const Place n =
      gate(2, Tanh{}, ops.Wide(EltwiseSum{}, {ops.Wide(Cast{}, {part(2)}), ops.Product(r, fed)}));
  const Place kept = ops.Product(z, ops.Difference(ops.Wide(Cast{}, {hidden}), n));
  step.Add(Cast{}, {ops.Wide(EltwiseSum{}, {n, kept})}, {step.Writes(h, ops.type)});
  step.KeepLast(h, op.kHLast);
  return step.Finish();
}

KernelOrRefusal MakeGruResetAfterGradInTurn(const GruResetAfterStepsGrad& op,
                                            const KernelRequest& request) {
  StepOps ops(op, /*is_gradient=*/true, request);
  StepRegion& step = ops.step;
  const int64_t width = op.width;
  const auto [dh_read, dh_written] = step.Carried(width, ops.wide, op.kDhLast);
  const Place cont = step.Reads(step.Cont(op.kCont), ops.wide);
  const Place hidden = ops.Hidden(step.Input(op.kH), op.kH0, cont);
  const auto saved = [&](int input) { return step.Reads(step.Input(input), ops.wide); };
  const Place z = saved(op.kGates), r = saved(op.kGates + 1), n = saved(op.kGates + 2);
  // Returns what reaches h' through a product, and stores the product's gradient as `output`.
  const auto back = [&](Place d, int output, int weights) {
    return ops.TimesBack(ops.Store(d, output, ops.type), op.kWeights + weights, width, width);
  };
  ops.Store(hidden, op.kHidden, ops.type);
  const Place dh = ops.SumOfGradients(op.kDh, dh_read);
  const Place kept = ops.Product(dh, z);
  const Place dn = ops.Wide(TanhGrad{}, {n, ops.Difference(dh, kept)});
  ops.Store(dn, op.kDGates + 2, ops.type);
  const Place past_n = ops.Difference(ops.Wide(Cast{}, {hidden}), n);
  const Place dz = ops.Wide(SigmoidGrad{}, {z, ops.Product(dh, past_n)});
  const Place dr = ops.Wide(SigmoidGrad{}, {r, ops.Product(dn, saved(op.kFed))});
  const Place dhidden =
      ops.Wide(EltwiseSum{}, {kept, back(dz, op.kDGates, 0), back(dr, op.kDGates + 1, 1),
                              back(ops.Product(dn, r), op.kDFed, 2)});
  step.Add(kScaleItems, {dhidden, cont}, {step.Writes(dh_written, ops.wide)});
  step.KeepLast(dh_written, op.kDh0);
  return step.Finish();
}

KernelOrRefusal MakeRnnInTurn(const RnnSteps& op, const KernelRequest& request) {
  StepOps ops(op, /*is_gradient=*/false, request);
  StepRegion& step = ops.step;
  const StepTensor h = step.Output(op.kH, op.width, ops.type);
  const Place hidden = ops.Hidden(h, op.kH0, step.Reads(step.Cont(op.kCont), ops.wide));
  const Place products = step.Reads(step.Input(op.kProducts), ops.type);
  const Place sums = ops.GateInputs(products, hidden, op.kWeights, op.width);
  step.Add(Cast{}, {ops.Wide(Tanh{}, {sums})}, {step.Writes(h, ops.type)});
  step.KeepLast(h, op.kHLast);
  return step.Finish();
}

KernelOrRefusal MakeRnnGradInTurn(const RnnStepsGrad& op, const KernelRequest& request) {
  StepOps ops(op, /*is_gradient=*/true, request);
  StepRegion& step = ops.step;
  const int64_t width = op.width;
  const auto [dh_read, dh_written] = step.Carried(width, ops.wide, op.kDhLast);
  const StepTensor h = step.Input(op.kH);
  const Place cont = step.Reads(step.Cont(op.kCont), ops.wide);
  step.Add(Cast{}, {ops.Hidden(h, op.kH0, cont)},
           {step.Writes(step.Output(op.kHidden, width, ops.type), ops.type)});
  const Place dsum =
      ops.Wide(TanhGrad{}, {step.Reads(h, ops.wide), ops.SumOfGradients(op.kDh, dh_read)});
  const Place dproducts = step.Writes(step.Output(op.kDProducts, width, ops.type), ops.type);
  step.Add(Cast{}, {dsum}, {dproducts});
  step.Add(kScaleItems, {ops.TimesBack(dproducts, op.kWeights, width, width), cont},
           {step.Writes(dh_written, ops.wide)});
  step.KeepLast(dh_written, op.kDh0);
  return step.Finish();
}

}  // namespace caffe::ops
