#include "caffe/cuda/reduce.cuh"
#include "caffe/ops/update.hpp"

namespace caffe::cuda {
namespace {

struct StoreTotal {
  double* to;
  bool adds;

  __device__ void operator()(int64_t, const Sums<1, double>& sums) const {
    *to = adds ? *to + sums.values[0] : sums.values[0];
  }
};

template <typename T>
struct AddProduct {
  const T *x, *y;

  __device__ void operator()(int64_t, int64_t i, Sums<1, double>& sums) const {
    sums.values[0] += static_cast<double>(Wide(x[i])) * static_cast<double>(Wide(y[i]));
  }
};

// The sum of products of inputs 0 and `second`.
KernelOrRefusal MakeSumOfProducts(const KernelRequest& request, int second) {
  const Covered all(1, 1, request.inputs[0].count());
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
                    SumCovered<1, double>(
                        ctx, all, ctx.workspace,
                        AddProduct<T>{ctx.input(0).as<const T>(), ctx.input(second).as<const T>()},
                        StoreTotal{ctx.output(0).as<double>(), ctx.accumulates(0)});
                  });
                },
                SumWorkspace<1, double>(all)};
}

KernelOrRefusal MakeSumOfSquares(const ops::SumOfSquares&, const KernelRequest& request) {
  return MakeSumOfProducts(request, 0);
}
KernelOrRefusal MakeDot(const ops::Dot&, const KernelRequest& request) {
  return MakeSumOfProducts(request, 1);
}

struct LargerOrNan {
  __device__ double operator()(double a, double b) const { return a > b || a != a ? a : b; }
};

// The largest of a part of the elements, one part per block.
template <typename T>
struct LargestOfPart {
  const T* x;
  int64_t count, parts;
  double* largest;

  __device__ void operator()(int64_t part, const BlockGroup& group) const {
    double value = 0;
    const int64_t end = count * (part + 1) / parts;
    for (int64_t i = count * part / parts + group.rank(); i < end; i += group.size()) {
      value = LargerOrNan{}(std::abs(static_cast<double>(Wide(x[i]))), value);
    }
    value = group.Reduce(LargerOrNan{}, value);
    if (group.rank() == 0) largest[part] = value;
  }
};

struct LargestOfAll {
  const double* parts;
  int64_t count;
  double* to;
  bool adds;

  __device__ void operator()(int64_t, const BlockGroup& group) const {
    double value = 0;
    for (int64_t i = group.rank(); i < count; i += group.size()) {
      value = LargerOrNan{}(parts[i], value);
    }
    value = group.Reduce(LargerOrNan{}, value);
    if (group.rank() == 0) *to = adds ? LargerOrNan{}(value, *to) : value;
  }
};

KernelOrRefusal MakeMaxAbs(const ops::MaxAbs&, const KernelRequest& request) {
  constexpr int64_t kLeastElements = 4096, kMaxParts = 1024;
  const int64_t count = request.inputs[0].count();
  const int64_t parts = std::clamp<int64_t>(count / kLeastElements, 1, kMaxParts);
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  double* largest = static_cast<double*>(ctx.workspace);
                  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
                    ForBlocks(ctx, parts,
                              LargestOfPart<T>{ctx.input(0).as<const T>(), count, parts, largest});
                  });
                  ForBlocks(
                      ctx, 1,
                      LargestOfAll{largest, parts, ctx.output(0).as<double>(), ctx.accumulates(0)});
                },
                static_cast<size_t>(parts) * sizeof(double)};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::SumOfSquares, "sum-of-squares",
                              KernelRank::kReference, MakeSumOfSquares);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Dot, "dot", KernelRank::kReference, MakeDot);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::MaxAbs, "max-abs", KernelRank::kReference,
                              MakeMaxAbs);

}  // namespace
}  // namespace caffe::cuda
