// Text and picture of `caffe find-lr`.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "caffe/error.hpp"
#include "caffe/io/json.hpp"
#include "caffe/rate_finder.hpp"

namespace caffe {
namespace {

template <typename... Args>
std::string RateText(const char* format, Args... args) {
  char text[256];
  std::snprintf(text, sizeof(text), format, args...);
  return text;
}

std::string ConclusionOf(const RateTest& test) {
  if (!test.steepest) {
    return "The loss never falls: look at the data and the net, or begin at a lower rate.\n";
  }
  const double highest = test.points.back().rate, best = test.points[test.minimum].rate;
  const bool still_falls = !test.has_diverged && test.minimum + 1 == test.points.size();
  const std::string end =
      test.has_diverged ? RateText("The loss diverges beyond rate %.3g.\n", highest)
      : still_falls
          ? RateText("The loss still falls at %.3g, the highest rate: try higher ones.\n", highest)
          : RateText("The loss has not diverged up to rate %.3g.\n", highest);
  const char* const what =
      test.has_diverged ? "where training is about to be unstable" : "and rises beyond";
  return StrCat(
      end, still_falls ? "" : RateText("It is smallest at %.3g, %s.\n", best, what),
      RateText("Suggestion: base_lr: %.2g, where it falls fastest.\n", test.suggestion()));
}

// Range of the smoothed losses to show; a diverging end is cut off.
struct LossRange {
  explicit LossRange(const RateTest& test) {
    least = most = test.points[0].smoothed_loss;
    for (size_t i = 0; i <= test.minimum; ++i) {
      least = std::min(least, test.points[i].smoothed_loss);
      most = std::max(most, test.points[i].smoothed_loss);
    }
    most += 0.25 * (most - least);
    if (most <= least) most = least + 1;
  }
  // 0 at the minimum, 1 at the maximum and above.
  double PlaceOf(double loss) const {
    return std::clamp((loss - least) / (most - least), 0.0, 1.0);
  }

  double least = 0, most = 0;
};

// Maps rates and losses to pixels.
class Canvas {
 public:
  static constexpr double kWidth = 720, kHeight = 400, kLeft = 70, kRight = 20, kTop = 30,
                          kBottom = 50;

  explicit Canvas(const RateTest& test)
      : losses_(test),
        first_(std::log10(test.points.front().rate)),
        last_(std::max(std::log10(test.points.back().rate), first_ + 1e-9)) {}

  double X(double rate) const {
    return kLeft + (kWidth - kLeft - kRight) * (std::log10(rate) - first_) / (last_ - first_);
  }
  double Y(double loss) const {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * losses_.PlaceOf(loss);
  }
  const LossRange& losses() const { return losses_; }
  double first() const { return first_; }
  double last() const { return last_; }

 private:
  const LossRange losses_;
  const double first_, last_;  // powers of ten
};

std::string Line(double x1, double y1, double x2, double y2, const char* style) {
  return RateText("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2,
                  style);
}

std::string Label(double x, double y, const char* anchor, const std::string& text) {
  return RateText("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor) + text +
         "</text>\n";
}

std::string Axes(const Canvas& canvas) {
  const double bottom = Canvas::kHeight - Canvas::kBottom, right = Canvas::kWidth - Canvas::kRight;
  std::string svg;
  for (int power = static_cast<int>(std::ceil(canvas.first()));
       power <= static_cast<int>(std::floor(canvas.last())); ++power) {
    const double x = canvas.X(std::pow(10.0, power));
    svg += Line(x, Canvas::kTop, x, bottom, "stroke=\"#ddd\"");
    svg += Label(x, bottom + 18, "middle", RateText("1e%d", power));
  }
  for (const double part : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    const LossRange& losses = canvas.losses();
    const double loss = losses.least + part * (losses.most - losses.least), y = canvas.Y(loss);
    svg += Line(Canvas::kLeft, y, right, y, "stroke=\"#ddd\"");
    svg += Label(Canvas::kLeft - 8, y + 4, "end", RateText("%.3g", loss));
  }
  svg += Label((Canvas::kLeft + right) / 2, Canvas::kHeight - 12, "middle", "learning rate");
  svg += Label(Canvas::kLeft, Canvas::kTop - 12, "start", "smoothed loss");
  return svg;
}

}  // namespace

std::string FormatRateTest(const RateTest& test) {
  CAFFE_ASSERT(!test.points.empty(), "a test without iterations");
  constexpr size_t kRows = 24;
  constexpr double kBar = 40;
  const LossRange losses(test);
  std::string text = "iteration       rate         loss     smoothed\n";
  for (size_t row = 0, last = test.points.size(); row < kRows; ++row) {
    const size_t i = row * (test.points.size() - 1) / (kRows - 1);
    if (i == last) continue;  // there are fewer points than rows
    last = i;
    const RateTestPoint& point = test.points[i];
    const auto bar =
        static_cast<size_t>(1 + std::lround((kBar - 1) * losses.PlaceOf(point.smoothed_loss)));
    text += RateText("%9d %10.3g %12.6g %12.6g  ", point.iteration, point.rate, point.loss,
                     point.smoothed_loss) +
            std::string(bar, '#') + "\n";
  }
  return text + ConclusionOf(test);
}

std::string FormatRateTestJson(const RateTest& test) {
  JsonObject root;
  PutJson(&root, "has_diverged", test.has_diverged);
  if (test.steepest) PutJson(&root, "suggestion", test.suggestion());
  PutJson(&root, "rate_of_minimum", test.points[test.minimum].rate);
  for (const RateTestPoint& point : test.points) {
    JsonObject* object = AddJson(&root, "points");
    PutJson(object, "iteration", point.iteration);
    PutJson(object, "rate", point.rate);
    PutJson(object, "loss", point.loss);
    PutJson(object, "smoothed_loss", point.smoothed_loss);
  }
  return FormatJson(root);
}

std::string FormatRateTestSvg(const RateTest& test) {
  CAFFE_ASSERT(!test.points.empty(), "a test without iterations");
  const Canvas canvas(test);
  std::string svg = RateText(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      Canvas::kWidth, Canvas::kHeight);
  svg += Axes(canvas);
  for (const RateTestPoint& point : test.points) {
    svg += RateText("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"1.5\" fill=\"#bbb\"/>\n",
                    canvas.X(point.rate), canvas.Y(point.loss));
  }
  svg += "<polyline fill=\"none\" stroke=\"#1f77b4\" stroke-width=\"2\" points=\"";
  for (const RateTestPoint& point : test.points)
    svg += RateText("%.1f,%.1f ", canvas.X(point.rate), canvas.Y(point.smoothed_loss));
  svg += "\"/>\n";
  if (test.steepest) {
    const double x = canvas.X(test.suggestion());
    svg += Line(x, Canvas::kTop, x, Canvas::kHeight - Canvas::kBottom,
                "stroke=\"#d62728\" stroke-dasharray=\"4 3\"");
    svg += Label(x + 6, Canvas::kTop + 14, "start", RateText("base_lr: %.2g", test.suggestion()));
  }
  return svg + "</svg>\n";
}

}  // namespace caffe
