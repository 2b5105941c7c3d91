#include <memory>

#include "caffe/data/token_windows.hpp"
#include "caffe/data_supply.hpp"
#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/data/at_place.hpp"
#include "caffe/layers/data/store_batch.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Batches of sequences of a text; the second top has for each token the one after it.
class TokensLayer final : public Layer, public DataSupply {
 public:
  explicit TokensLayer(const LayerParameter& param) : Layer(param), options_(param.tokens_param()) {
    Require(!options_.source().empty(),
            "tokens_param { source } is missing; name the folder that caffe data import-text made");
    Require(options_.batch_size() > 0, "tokens_param { batch_size } is ", options_.batch_size(),
            "; it must be at least 1");
    Require(0 < options_.length() && options_.length() <= kMostTokens,
            "tokens_param { length } is ", options_.length(), "; it must be from 1 to ",
            kMostTokens);
    Require(!param.has_transform_param(), "transform_param is for images, not for tokens");
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 0, .min_tops = 1, .max_tops = 2, .is_data = true, .has_backward = false};
  }

  void Prepare(const DataPlace& place) override {
    const bool shuffle = options_.order() == TokensParameter::RANDOM && !place.whole_epochs;
    stream_ = std::make_shared<Stream>(
        AtPlace(*this, place, options_.batch_size(),
                data::TokenWindowsOptions{
                    .folder = options_.source(), .length = options_.length(), .shuffle = shuffle}));
  }

  uint64_t records_delivered() const override { return stream_->windows.consumed(); }
  uint64_t records_per_epoch() const override { return stream_->windows.count(); }
  uint64_t records_per_batch() const override { return options_.batch_size(); }
  std::optional<double> wait_seconds() const override { return std::nullopt; }
  std::vector<SuppliedRecord> records_of_batch() const override { return stream_->batch; }
  std::string content() const override {
    const data::TokenFile& file = stream_->windows.file();
    return StrCat(file.count(), " tokens of ", file.vocabulary(), " kinds: ", file.tokenizer());
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>&) const override {
    const Shape top{options_.batch_size(), options_.length()};
    return std::vector<Shape>(static_cast<size_t>(param().top_size()), top);
  }

  void EmitForward(GraphBuilder& graph) const override {
    std::vector<Value*> tops;
    for (int i = 0; i < graph.num_tops(); ++i) tops.push_back(graph.top(i));
    graph.Emit(ops::HostCall{.what = "next tokens",
                             .call = [stream = stream_](
                                         const KernelContext& ctx) { return stream->Store(ctx); },
                             .is_source = true},
               {}, tops);
  }

 private:
  static constexpr uint32_t kMostTokens = 1 << 24;  // far more than any net reads at once

  struct Stream {
    explicit Stream(const data::TokenWindowsOptions& options) : windows(options) {}

    // Returns the tops' shapes if the batch has another size: the last one of an epoch may be
    // smaller.
    std::vector<Shape> Store(const KernelContext& ctx) {
      const Shape& shape = ctx.output(0).shape;
      const auto left = static_cast<int64_t>(windows.LeftOfBlock());
      if (windows.ends_epochs() && left != shape[0])
        return std::vector<Shape>(ctx.outputs.size(), Shape{left, shape[1]});
      batch.clear();
      for (int64_t item = 0; item < shape[0]; ++item) StoreWindow(item, ctx);
      return {};
    }

    void StoreWindow(int64_t item, const KernelContext& ctx) {
      const data::TokenWindows::Window window = windows.Next();
      for (int i = 0; i < static_cast<int>(ctx.outputs.size()); ++i) {
        TensorView row = ctx.output(i);
        const int64_t length = row.shape[1];
        row.data = row.as<char>() + item * length * static_cast<int64_t>(SizeOf(row.dtype));
        row.shape = Shape{length};
        StoreBatch(window.tokens + i, row);
      }
      batch.push_back({.index = window.first, .name = StrCat("token ", window.first)});
    }

    data::TokenWindows windows;
    std::vector<SuppliedRecord> batch;
  };

  const TokensParameter options_;
  std::shared_ptr<Stream> stream_;
};

REGISTER_LAYER_CLASS(Tokens);

}  // namespace
}  // namespace caffe
