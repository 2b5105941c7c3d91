#include "tests/fuzz/cluster/records_layer.hpp"

#include <memory>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"
#include "tests/fuzz/dag/random_numbers.hpp"

namespace caffe::fuzz {

RecordFaults the_record_faults;

namespace {

// Top 0 has rows of numbers, top 1 their targets; `dummy_data_param` has their shapes.
class SimulatedRecordsLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.num_bottoms = 0, .num_tops = 2, .is_data = true, .has_backward = false};
  }

  void Prepare(const DataPlace& place) override {
    *reading_ = {.place = place, .next = place.records};
    if (place.records > 0) reading_->next += the_record_faults.shift;
  }

  uint64_t records_delivered() const override { return reading_->next; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>&) const override {
    return {ShapeOfTop(0), ShapeOfTop(1)};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::HostCall{.what = "records",
                             .call = [reading = reading_](
                                         const KernelContext& ctx) { reading->Fill(ctx); },
                             .is_source = true},
               {}, {graph.top(0), graph.top(1)});
  }

 private:
  struct Reading {
    DataPlace place;
    uint64_t next = 0;  // next record, counted over all ranks
    int64_t passes = 0;

    void Fill(const KernelContext& ctx) {
      if (place.rank == the_record_faults.failing_rank &&
          passes++ == the_record_faults.failing_pass) {
        throw IoError("record 7 is damaged");
      }
      const TensorView& rows = ctx.output(0);
      const int64_t count = rows.shape[0];
      for (int64_t row = 0; row < count; ++row) {
        RandomNumbers random(next + static_cast<uint64_t>(place.rank * count + row));
        FillRow(rows, row, &random);
        FillRow(ctx.output(1), row, &random);
      }
      next += static_cast<uint64_t>(place.ranks * count);
    }

    static void FillRow(const TensorView& tensor, int64_t row, RandomNumbers* random) {
      const int64_t width = tensor.count() / tensor.shape[0];
      VisitFloat(tensor.dtype, [&]<typename T>(TypeTag<T>) {
        for (int64_t i = 0; i < width; ++i) tensor.as<T>()[row * width + i] = T(random->Uniform());
      });
    }
  };

  Shape ShapeOfTop(int top) const {
    const BlobShape& shape = param().dummy_data_param().shape(top);
    return Shape(std::vector<int64_t>(shape.dim().begin(), shape.dim().end()));
  }

  const std::shared_ptr<Reading> reading_ = std::make_shared<Reading>();
};
REGISTER_LAYER_CLASS(SimulatedRecords, "dummy_data_param");

}  // namespace
}  // namespace caffe::fuzz
