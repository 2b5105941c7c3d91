#include "caffe/data/readers/video_reader.hpp"
#include "caffe/data/sources/video_source.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/data/batch_data_layer.hpp"

namespace caffe {
namespace {

// Batches of frames from a video or a camera; the label is 0 (SSD).
class VideoDataLayer final : public BatchDataLayer {
 public:
  explicit VideoDataLayer(const LayerParameter& param) : BatchDataLayer(param) {
    const VideoDataParameter& options = param.video_data_param();
    Require(!data::IsVideo(options) || !options.video_file().empty(),
            "video_data_param { video_file } is missing; name the video");
    Require(options.device_id() >= 0, "video_data_param { device_id } is ", options.device_id(),
            "; cameras count from 0");
  }

 private:
  std::unique_ptr<data::RecordSource> MakeRecords(
      const data::BatchSourceOptions& options) const override {
    return data::MakeVideoSource(param().data_param(), param().video_data_param(), options);
  }
};

REGISTER_LAYER_CLASS(VideoData, "data_param", "transform_param");

}  // namespace
}  // namespace caffe
