// caffe detect: finds objects in images.
#include <glog/logging.h>

#include <cmath>
#include <iomanip>
#include <iostream>

#include "caffe/core/printable.hpp"
#include "caffe/data/parsers/draw_boxes.hpp"
#include "caffe/error.hpp"
#include "tools/caffe/ask_net.hpp"
#include "tools/caffe/image_copies.hpp"

namespace caffe::tools {
namespace {

// One output row of DetectionOutput and similar layers: index in the batch, class, score, and the
// box as fractions of width and height.
struct Detection {
  static constexpr int kNumbers = 7;
  explicit Detection(const float* row)
      : image(static_cast<int>(row[0])),
        label(static_cast<int>(row[1])),
        score(row[2]),
        xmin(row[3]),
        ymin(row[4]),
        xmax(row[5]),
        ymax(row[6]) {}
  int image, label;
  float score, xmin, ymin, xmax, ymax;
};

class Detect : public AskCommand {
 public:
  explicit Detect(CLI::App& app) : AskCommand(app) {
    app.add_option("--threshold", threshold_, "Leave out detections of a lower score")
        ->type_name("SCORE");
    app.add_option("--draw", folder_, "Write copies of the images with their boxes to this folder")
        ->type_name("FOLDER");
  }

 private:
  void Prepare(const Net& net) override {
    Require(net.output_names().size() == 1, "the net has ", net.output_names().size(),
            " outputs; a detector has one, of a DetectionOutput layer");
    Require(std::isfinite(threshold_), "--threshold is ", threshold_, "; it must be a number");
    copies_ = ImageCopies(folder_);
  }

  void Report(const Net& net, int index, const ShownImage& image, JsonObject* result) override {
    MakeJsonList(result, "detections");
    std::vector<data::LabelledBox> boxes;
    for (const Detection& found : DetectionsOf(net, index)) {
      const data::SeenPart& seen = image.seen;
      boxes.push_back(
          {Place(seen.left, seen.width, found.xmin), Place(seen.top, seen.height, found.ymin),
           Place(seen.left, seen.width, found.xmax), Place(seen.top, seen.height, found.ymax),
           names().Of(found.label), found.label});
      Print(image.name, found, boxes.back());
      Put(found, boxes.back(), AddJson(result, "detections"));
      boxes.back().text += StrCat(" ", std::lround(found.score * 100), "%");
    }
    LOG_IF(INFO, boxes.empty()) << Printable(image.name) << ": nothing has a score of "
                                << threshold_ << " or more; a lower --threshold shows what does";
    if (!copies_) return;
    data::Image copy = image.pixels;
    data::DrawBoxes(boxes, &copy);
    copies_.Write(image.name, copy);
  }

  // From a share of the part that the net saw to pixels of the image.
  static float Place(double begin, double extent, float share) {
    return static_cast<float>(begin + share * extent);
  }

  // The detections of image `index`, in row order. Rows without a detection have image -1.
  std::vector<Detection> DetectionsOf(const Net& net, int index) const {
    const Blob& rows = *net.output_blobs()[0];
    Require(
        rows.shape().num_axes() == 4 && rows.shape()[3] == Detection::kNumbers, "output '",
        net.output_names()[0], "' has the shape ", rows.shape(),
        "; a detector's is 1x1xRx7, as of DetectionOutput. Nets with scores of classes are asked "
        "by caffe classify, those with scores for each pixel by caffe segment");
    std::vector<Detection> found;
    const float* const numbers = rows.cpu_data<float>();
    for (int64_t at = 0; at < rows.count(); at += Detection::kNumbers) {
      const Detection one(numbers + at);
      if (one.image == index && one.score >= threshold_) found.push_back(one);
    }
    return found;
  }

  // Same format as SSD's ssd_detect.
  void Print(const std::string& image, const Detection& found, const data::LabelledBox& box) const {
    if (prints_json()) return;
    std::cout << Printable(image) << " " << box.text << " " << std::defaultfloat
              << std::setprecision(4) << found.score << std::fixed << std::setprecision(0);
    for (const float place : {box.left, box.top, box.right, box.bottom}) std::cout << " " << place;
    std::cout << "\n";
  }

  static void Put(const Detection& found, const data::LabelledBox& box, JsonObject* one) {
    PutJson(one, "class", found.label);
    PutJson(one, "name", box.text);
    PutJson(one, "score", found.score);
    PutJson(one, "xmin", box.left);
    PutJson(one, "ymin", box.top);
    PutJson(one, "xmax", box.right);
    PutJson(one, "ymax", box.bottom);
  }

  double threshold_ = 0.5;
  std::string folder_;
  ImageCopies copies_;
};

const CommandRegistrar<Detect> detect_registrar(
    "detect",
    {.purpose = Purpose::kUse,
     .summary = "find things in images",
     .about = "Runs images, or the frames of a video or a camera, through a detector that ends in "
              "a DetectionOutput layer (SSD, YOLO) and prints a line for each detection: image, "
              "class, score, and the box in pixels (left, top, right, bottom).",
     .examples = "caffe detect boxes_model street.jpg --draw=found\n"
                 "caffe detect deploy.prototxt street.jpg --weights=ssd.caffemodel "
                 "--mean_values=104,117,123\n"
                 "caffe detect deploy.prototxt --video=street.mp4 --weights=ssd.caffemodel "
                 "--draw=found"});

}  // namespace
}  // namespace caffe::tools
