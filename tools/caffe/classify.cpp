// caffe classify: prints the most likely classes of images.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <numeric>

#include "caffe/core/printable.hpp"
#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "tools/caffe/ask_net.hpp"

namespace caffe::tools {
namespace {

class Classify : public AskCommand {
 public:
  explicit Classify(CLI::App& app) : AskCommand(app) {
    app.add_option("--top", top_, "How many classes to print for each image")->type_name("N");
    app.add_option("--output", output_, "The blob with a score for each class")
        ->type_name("BLOB")
        ->default_str("the net's only output");
  }

 private:
  void Prepare(const Net& net) override {
    Require(top_ >= 1, "--top is ", top_, "; it must be at least 1");
    const std::vector<std::string>& outputs = net.output_names();
    if (!output_.empty()) {
      Require(std::find(outputs.begin(), outputs.end(), output_) != outputs.end(), "--output is '",
              output_, "', which is not an output of the net; it has ", JoinByComma(outputs));
      return;
    }
    Require(net.output_names().size() == 1, "the net has ", net.output_names().size(),
            " outputs; name the one with the scores by --output");
    output_ = net.output_names()[0];
  }

  void Report(const Net& net, int index, const ShownImage& image, JsonObject* result) override {
    const std::shared_ptr<Blob> blob = net.blob_by_name(output_);
    const int64_t images = net.input_blobs()[0]->shape()[0];
    Require(blob->shape().num_axes() > 0 && blob->shape()[0] == images, "output '", output_,
            "' has the shape ", blob->shape(), " for ", images,
            " images; its first axis has to be theirs");
    Require(blob->shape().num_axes() != 4 || blob->count() == images * blob->shape()[1], "output '",
            output_, "' has the shape ", blob->shape(),
            ": scores for each pixel; caffe segment tells the class of each");
    const int64_t classes = blob->count() / images;
    const auto lines = static_cast<int64_t>(names().names().size());
    Require(lines == 0 || names().is_map() || lines >= classes,
            has_labels() ? "--labels" : "what the model knows of its classes", " has ", lines,
            " names, but output '", output_, "' has ", classes, " classes; give a line for each",
            has_labels() ? "" : " in a file, by --labels");
    const float* const scores = blob->cpu_data<float>() + index * classes;
    if (!prints_json()) std::cout << "---------- " << Printable(image.name) << " ----------\n";
    for (const int number : Likeliest(scores, static_cast<int>(classes))) {
      const std::string name = names().Of(number);
      if (!prints_json()) {
        std::cout << std::fixed << std::setprecision(4) << scores[number] << " - \"" << name
                  << "\"\n";
      }
      JsonObject* const one = AddJson(result, "classes");
      PutJson(one, "class", number);
      PutJson(one, "name", name);
      PutJson(one, "score", scores[number]);
    }
  }

  // The top_ classes by descending score; the lower class first in ties, NaN last.
  std::vector<int> Likeliest(const float* scores, int classes) const {
    std::vector<int> order(classes);
    std::iota(order.begin(), order.end(), 0);
    const int count = std::min(top_, classes);
    std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int a, int b) {
      const bool is_a = !std::isnan(scores[a]), is_b = !std::isnan(scores[b]);
      if (is_a != is_b) return is_a;
      return is_a && scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    });
    order.resize(count);
    return order;
  }

  int top_ = 5;
  std::string output_;
};

const CommandRegistrar<Classify> classify_registrar(
    "classify",
    {.purpose = Purpose::kUse,
     .summary = "say what images show",
     .about = "Runs images, or the frames of a video or a camera, through a net for classification "
              "and prints the likeliest classes of each. Images that cannot be read are named, and "
              "the exit status is then 1.",
     .examples = "caffe classify photos_model cat.jpg\n"
                 "caffe classify deploy.prototxt cat.jpg --weights=net.caffemodel "
                 "--mean_values=104,117,123\n"
                 "caffe classify deploy.prototxt photos/ --weights=net.caffemodel "
                 "--data=train_val.prototxt"});

}  // namespace
}  // namespace caffe::tools
