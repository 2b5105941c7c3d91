#include "caffe/ops/pick.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "caffe/cpu/kernels/each_element.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// The place that element i of an index names.
int64_t NamedPlace(const TensorView& index, int64_t i, int64_t extent) {
  const double value = ElementOf(index, i);
  const int64_t place = ops::PlaceOf(value, extent);
  Require(place >= 0, "index ", value, " at position ", i,
          " of the indices must be a whole number ", "in ", -extent, "..", extent - 1,
          ", because the axis has ", extent, " elements and negative numbers count from its end");
  return place;
}

void RequirePlaces(const TensorView& index, int64_t extent) {
  for (int64_t i = 0; i < index.count(); ++i) NamedPlace(index, i, extent);
}

int64_t RowsOf(const TensorView& x, int64_t row) {
  return x.count() / std::max<int64_t>(row, 1);
}

void Take(const ops::Take& op, const KernelContext& ctx) {
  const auto [extent, count, inner] = op.axis;
  const TensorView &x = ctx.input(0), &index = ctx.input(1), &y = ctx.output(0);
  RequirePlaces(index, extent);
  const int64_t outer = RowsOf(y, count * inner);
  const auto bytes = static_cast<size_t>(inner) * SizeOf(y.dtype);
  ParallelFor(outer * count, 1 + kPointwiseGrain / std::max<int64_t>(inner, 1),
              [&, extent = extent, count = count](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t from =
                      i / count * extent + ops::PlaceOf(ElementOf(index, i % count), extent);
                  std::memcpy(y.as<char>() + i * bytes, x.as<const char>() + from * bytes, bytes);
                }
              });
}

// Columns run in parallel, so that repeated places are added in order.
void TakeGrad(const ops::TakeGrad& op, const KernelContext& ctx) {
  const auto [extent, count, inner] = op.axis;
  const TensorView &dy = ctx.input(0), &index = ctx.input(1), &dx = ctx.output(0);
  std::vector<int64_t> places;
  for (int64_t k = 0; k < index.count(); ++k) places.push_back(NamedPlace(index, k, extent));
  VisitFloat(dx.dtype, [&, extent = extent, count = count, inner = inner]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    const int64_t columns = RowsOf(dx, extent);
    ParallelFor(columns, 1 + kPointwiseGrain / (extent + count), [&](int64_t begin, int64_t end) {
      std::vector<A> sums(extent);
      for (int64_t column = begin; column < end; ++column) {
        const int64_t outer = column / inner, within = column % inner;
        std::ranges::fill(sums, A(0));
        const T* from = dy.as<const T>() + outer * count * inner + within;
        for (int64_t k = 0; k < count; ++k) sums[places[k]] += static_cast<A>(from[k * inner]);
        T* to = dx.as<T>() + outer * extent * inner + within;
        for (int64_t place = 0; place < extent; ++place) to[place * inner] = T(sums[place]);
      }
    });
  });
}

void TakeElements(const ops::TakeElements& op, const KernelContext& ctx) {
  RequirePlaces(ctx.input(1), op.axis.extent);
  EachElement(op, ctx);
}

void PutElements(const ops::PutElements& op, const KernelContext& ctx) {
  const auto [extent, count, inner] = op.axis;
  const TensorView &updates = ctx.input(0), &index = ctx.input(1), &y = ctx.output(0);
  RequirePlaces(index, extent);
  if (ctx.has_input(2)) {
    CopyBytes(ctx.input(2), y);
  } else {
    std::memset(y.data, 0, y.bytes());
  }
  VisitFloat(y.dtype, [&, extent = extent, count = count, inner = inner]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    ParallelFor(RowsOf(y, extent), 1 + kPointwiseGrain / (1 + count),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const int64_t outer = row / inner, within = row % inner;
                    for (int64_t k = 0; k < count; ++k) {
                      const int64_t from = (outer * count + k) * inner + within;
                      const int64_t place = ops::PlaceOf(ElementOf(index, from), extent);
                      T& to = y.as<T>()[(outer * extent + place) * inner + within];
                      const A update = static_cast<A>(updates.as<const T>()[from]);
                      to = T(op.adds ? static_cast<A>(to) + update : update);
                    }
                  }
                });
  });
}

void ClearElements(const ops::ClearElements& op, const KernelContext& ctx) {
  const auto [extent, count, inner] = op.axis;
  const TensorView &index = ctx.input(1), &dx = ctx.output(0);
  RequirePlaces(index, extent);
  CopyBytes(ctx.input(0), dx);
  const size_t size = SizeOf(dx.dtype);
  for (int64_t i = 0; i < index.count(); ++i) {
    const int64_t outer = i / (count * inner);
    const int64_t place = ops::PlaceOf(ElementOf(index, i), extent);
    const int64_t at = (outer * extent + place) * inner + i % inner;
    std::memset(dx.as<char>() + at * size, 0, size);
  }
}

// True if `a` comes before `b` among the elements of a row; NaN is larger than all numbers.
template <typename T>
bool ComesFirst(bool largest, T a, T b) {
  if (a != a || b != b) return (largest ? a != a && b == b : a == a && b != b);
  return largest ? a > b : a < b;
}

void TopK(const ops::TopK& op, const KernelContext& ctx) {
  const auto [extent, count, inner] = op.axis;
  const TensorView& x = ctx.input(0);
  VisitFloat(x.dtype, [&, extent = extent, count = count, inner = inner]<typename T>(TypeTag<T>) {
    ParallelFor(RowsOf(x, extent), 1 + kPointwiseGrain / extent, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> order(extent);
      std::vector<double> row(extent);
      for (int64_t column = begin; column < end; ++column) {
        const int64_t outer = column / inner, within = column % inner;
        const T* from = x.as<const T>() + outer * extent * inner + within;
        for (int64_t k = 0; k < extent; ++k) row[k] = static_cast<double>(from[k * inner]);
        std::iota(order.begin(), order.end(), int64_t{0});
        const auto comes_first = [&](int64_t a, int64_t b) {
          if (ComesFirst(op.largest, row[a], row[b])) return true;
          return !ComesFirst(op.largest, row[b], row[a]) && a < b;
        };
        std::partial_sort(order.begin(), order.begin() + count, order.end(), comes_first);
        for (int64_t k = 0; k < count; ++k) {
          const int64_t to = (outer * count + k) * inner + within;
          if (ctx.has_output(0)) ctx.output(0).as<T>()[to] = from[order[k] * inner];
          if (ctx.has_output(1)) SetElement(ctx.output(1), to, static_cast<double>(order[k]));
        }
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Take, Take);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::TakeGrad, TakeGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::TakeElements, TakeElements);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::PutElements, PutElements);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ClearElements, ClearElements);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::TopK, TopK);

}  // namespace
}  // namespace caffe::cpu
