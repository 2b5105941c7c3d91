#include "caffe/experimental/split_exchange.hpp"

#include <cstring>

#include "caffe/error.hpp"

namespace caffe::passes {
namespace {

using Bytes = std::span<char>;
using ConstBytes = std::span<const char>;

Bytes Memory(const TensorView& view) {
  return {static_cast<char*>(view.data), view.bytes()};
}

// Copies the elements, converted to the type of another tensor.
std::vector<char> InType(const TensorView& view, DType dtype) {
  const TensorDesc desc{view.shape, dtype};
  std::vector<char> elements(desc.bytes());
  CopyTensor(view, {desc, elements.data()});
  return elements;
}

// Splits `bytes` into blocks of equal size, one for each rank.
template <typename Byte>
std::vector<std::span<Byte>> Blocks(std::span<Byte> bytes, int ranks) {
  const size_t size = bytes.size() / static_cast<size_t>(ranks);
  std::vector<std::span<Byte>> blocks;
  for (int r = 0; r < ranks; ++r) blocks.push_back(bytes.subspan(size * r, size));
  return blocks;
}

// Calls fn(run, part, size) for each run of a row's elements that belongs to one rank; `part` is
// its position in that rank's column.
template <typename Fn>
void ForEachRun(char* elements, int64_t rows, std::vector<std::vector<char>>& columns, Fn fn) {
  char* run = elements;
  for (int64_t row = 0; row < rows; ++row) {
    for (std::vector<char>& column : columns) {
      const size_t size = column.size() / static_cast<size_t>(rows);
      fn(run, column.data() + size * static_cast<size_t>(row), size);
      run += size;
    }
  }
}

}  // namespace

void SplitExchange::GatherRows(const KernelContext& ctx) const {
  const std::vector<char> rows = InType(ctx.input(0), ctx.output(0).dtype);
  const std::vector<ConstBytes> sent(static_cast<size_t>(ranks_->ranks), rows);
  Exchange(sent, Blocks(Memory(ctx.output(0)), ranks_->ranks));
}

void SplitExchange::ExchangeOutputs(const KernelContext& ctx) const {
  const TensorView& y = ctx.output(0);
  const std::vector<char> own = InType(ctx.input(0), y.dtype);
  std::vector<std::vector<char>> columns = Columns(y.dtype);
  Exchange(Blocks(ConstBytes(own), ranks_->ranks), {columns.begin(), columns.end()});
  ForEachRun(y.as<char>(), rows_, columns,
             [](char* run, const char* part, size_t size) { std::memcpy(run, part, size); });
}

void SplitExchange::ExchangeGradients(const KernelContext& ctx) const {
  const TensorView& all = ctx.output(0);
  std::vector<char> dy = InType(ctx.input(0), all.dtype);
  std::vector<std::vector<char>> columns = Columns(all.dtype);
  ForEachRun(dy.data(), rows_, columns,
             [](const char* run, char* part, size_t size) { std::memcpy(part, run, size); });
  Exchange({columns.begin(), columns.end()}, Blocks(Memory(all), ranks_->ranks));
  if (ctx.has_output(1)) Divide(all, ctx.output(1));
}

void SplitExchange::ScatterRows(const KernelContext& ctx) const {
  const std::vector<char> rows = InType(ctx.input(0), ctx.output(0).dtype);
  std::vector<Bytes> received;
  for (const TensorView& output : ctx.outputs) received.push_back(Memory(output));
  Exchange(Blocks(ConstBytes(rows), ranks_->ranks), received);
}

void SplitExchange::Exchange(const std::vector<ConstBytes>& sent,
                             const std::vector<Bytes>& received) const {
  Require(static_cast<bool>(ranks_->call), "is split over ", ranks_->ranks,
          " ranks, so it computes only while all of them train; outside of a solver's steps use a "
          "net in phase TEST");
  ranks_->call(sent, received);
}

// Memory for this rank's rows of each rank's outputs.
std::vector<std::vector<char>> SplitExchange::Columns(DType dtype) const {
  std::vector<std::vector<char>> columns;
  for (int r = 0; r < ranks_->ranks; ++r) {
    const int64_t count = rows_ * ranks_->Size(outputs_, r);
    columns.emplace_back(static_cast<size_t>(count) * SizeOf(dtype));
  }
  return columns;
}

// Gradients of parameters are means over ranks, like gradients that are all-reduced.
void SplitExchange::Divide(const TensorView& gradient, const TensorView& mean) const {
  std::vector<double> numbers(static_cast<size_t>(gradient.count()));
  const TensorView exact = {{gradient.shape, DType::kDouble}, numbers.data()};
  CopyTensor(gradient, exact);
  for (double& number : numbers) number *= 1.0 / ranks_->ranks;
  CopyTensor(exact, mean);
}

}  // namespace caffe::passes
