#include "caffe/data/sources/video_source.hpp"

#include "caffe/data/readers/video_reader.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

DataParameter ReadingOf(const DataParameter& data, const VideoDataParameter& video,
                        const BatchSourceOptions& options) {
  Require(!data.shuffle() && !data.cache(), NameOfVideo(video),
          ": data_param has shuffle or cache, but frames are read in their order; leave them out");
  Require(data.more().empty() && !data.has_weight(), NameOfVideo(video),
          ": data_param has more or weight, but a layer reads one video; leave them out");
  Require(IsVideo(video) || options.ranks == 1, NameOfVideo(video), ": cannot serve ", options.ranks,
          " workers; a camera is open once");
  DataParameter reading = data;
  reading.set_source(NameOfVideo(video));
  return reading;
}

class VideoSource final : public RecordSource {
 public:
  VideoSource(const DataParameter& data, const VideoDataParameter& video,
              const BatchSourceOptions& options)
      : RecordSource({.reading = ReadingOf(data, video, options), .transform = options.transform},
                     options),
        video_(video) {}

  std::unique_ptr<RecordReader> Open() const override { return OpenVideo(video_); }
  bool can_resume() const override { return IsVideo(video_); }

 private:
  std::unique_ptr<RecordLoader> MakeRecordLoader() const override {
    return std::make_unique<DatumLoader>(color_mode());
  }

  const VideoDataParameter video_;
};

}  // namespace

std::unique_ptr<RecordSource> MakeVideoSource(const DataParameter& data,
                                              const VideoDataParameter& video,
                                              const BatchSourceOptions& options) {
  return std::make_unique<VideoSource>(data, video, options);
}

}  // namespace caffe::data
