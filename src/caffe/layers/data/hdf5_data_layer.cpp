#include <memory>

#include "caffe/data/hdf5_rows.hpp"
#include "caffe/data_supply.hpp"
#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/data/at_place.hpp"
#include "caffe/layers/data/store_batch.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Batches of rows from HDF5 files; each top is the dataset with its name.
class HDF5DataLayer final : public Layer, public DataSupply {
 public:
  explicit HDF5DataLayer(const LayerParameter& param)
      : Layer(param), options_(param.hdf5_data_param()) {
    Require(!options_.source().empty(),
            "hdf5_data_param { source } is missing; name a text file that lists HDF5 files");
    Require(options_.batch_size() > 0, "batch_size is ", options_.batch_size(),
            "; it must be at least 1");
    Require(!param.has_transform_param(),
            "transform_param is not for this layer; transform the data before it is written");
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 0, .min_tops = 1, .is_data = true, .has_backward = false};
  }

  void Prepare(const DataPlace& place) override {
    rows_.reset();  // close it first: a source may be opened only once
    is_order_known_ = place.ranks == 1 && !place.whole_epochs && !options_.shuffle();
    rows_ = std::make_shared<data::Hdf5Rows>(
        AtPlace(*this, place, options_.batch_size(),
                data::Hdf5RowsOptions{.list = options_.source(),
                                      .datasets = {param().top().begin(), param().top().end()},
                                      .shuffle = options_.shuffle()}));
  }

  uint64_t records_delivered() const override { return rows_->rows_consumed(); }
  uint64_t records_per_epoch() const override { return rows_->count(); }
  // Rows have no names, and their order is known only without shuffling.
  std::vector<SuppliedRecord> records_of_batch() const override {
    std::vector<SuppliedRecord> records;
    const uint64_t end = rows_->rows_consumed(), batch = options_.batch_size();
    if (!is_order_known_ || end < batch) return records;
    for (uint64_t row = end - batch; row < end; ++row)
      records.push_back({.index = row % rows_->count(), .name = ""});
    return records;
  }
  uint64_t records_per_batch() const override { return options_.batch_size(); }
  std::optional<double> wait_seconds() const override { return std::nullopt; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>&) const override {
    std::vector<Shape> tops;
    for (const Shape& row : rows_->row_shapes()) {
      std::vector<int64_t> top = {options_.batch_size()};
      top.insert(top.end(), row.dims().begin(), row.dims().end());
      tops.emplace_back(std::move(top));
    }
    return tops;
  }

  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> tops;
    for (int i = 0; i < graph.num_tops(); ++i) tops.push_back(graph.top(i));
    const std::shared_ptr<data::Hdf5Rows> rows = rows_;
    const ops::HostFunction next =
        rows->ends_epochs()
            ? ops::HostFunction(
                  [rows](const KernelContext& ctx) { return StoreEnding(*rows, ctx); })
            : ops::HostFunction([rows](const KernelContext& ctx) { Store(*rows, ctx); });
    graph.Emit(ops::HostCall{.what = "next rows", .call = next, .is_source = true}, {}, tops);
  }

 private:
  static void Store(data::Hdf5Rows& rows, const KernelContext& ctx) {
    const int64_t batch = ctx.output(0).shape[0];
    for (int64_t item = 0; item < batch; ++item) StoreRow(rows.Next(), item, ctx);
  }

  // Returns the tops' shapes if the batch has another size: the last one of an epoch may be
  // smaller.
  static std::vector<Shape> StoreEnding(data::Hdf5Rows& rows, const KernelContext& ctx) {
    const auto batch = static_cast<int64_t>(rows.LeftOfBlock());
    if (batch == ctx.output(0).shape[0]) {
      Store(rows, ctx);
      return {};
    }
    std::vector<Shape> tops;
    for (const TensorView& output : ctx.outputs) {
      std::vector<int64_t> top = output.shape.dims();
      top[0] = batch;
      tops.emplace_back(std::move(top));
    }
    return tops;
  }

  static void StoreRow(const std::vector<const float*>& row, int64_t item,
                       const KernelContext& ctx) {
    for (int i = 0; i < static_cast<int>(row.size()); ++i) {
      const TensorView& top = ctx.output(i);
      const int64_t count = top.shape.count(1);
      TensorView place = top;
      place.shape = Shape{count};
      place.data = top.as<char>() + item * count * static_cast<int64_t>(SizeOf(top.dtype));
      StoreBatch(row[i], place);
    }
  }

  const HDF5DataParameter options_;
  std::shared_ptr<data::Hdf5Rows> rows_;
  bool is_order_known_ = false;  // not with several ranks, or batches of whole epochs
};

REGISTER_LAYER_CLASS(HDF5Data);

}  // namespace
}  // namespace caffe
