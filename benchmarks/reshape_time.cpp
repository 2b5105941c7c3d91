// Measures the cost of changing the input's size: reshape_time NET.prototxt prints one JSON object,
// in milliseconds. A new size has to be compiled, a known one does not. "again" is the forward pass
// that follows a reshape to a known size, compared with a forward pass without reshape. "pyramid"
// is the sum over ten sizes, from the net's own down to half of it: Reshape in the first and in the
// second round, and forward in the second.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "caffe/caffe.hpp"

namespace {

double Milliseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double Median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

struct Rounds {
  double first = 0, second = 0, forward = 0;
};

Rounds MeasurePyramid(caffe::Net& net) {
  constexpr int kSteps = 10;
  caffe::Blob& input = *net.input_blobs().at(0);
  const caffe::Shape usual = input.shape();
  Rounds rounds;
  for (const bool is_first : {true, false}) {
    for (int i = 0; i < kSteps; ++i) {
      const double scale = 1 - 0.5 * i / (kSteps - 1);
      const auto side = [&](int axis) {
        return static_cast<int64_t>(std::lround(static_cast<double>(usual[axis]) * scale));
      };
      input.Reshape(usual.With(2, side(2)).With(3, side(3)));
      (is_first ? rounds.first : rounds.second) += Milliseconds([&] { net.Reshape(); });
      const double forward = Milliseconds([&] { net.Forward(); });
      if (!is_first) rounds.forward += forward;
    }
  }
  return rounds;
}

void Measure(const char* file, bool keep_all) {
  caffe::Net net(file, caffe::TEST, 0, {}, {.keep_all = keep_all, .with_backward = keep_all});
  caffe::Blob& input = *net.input_blobs().at(0);
  const caffe::Shape usual = input.shape();
  std::vector<double> forward, fresh, seen, again;
  const auto reshape = [&](int64_t smaller, std::vector<double>* times) {
    input.Reshape(usual.With(2, usual[2] - smaller).With(3, usual[3] - smaller));
    times->push_back(Milliseconds([&] { net.Reshape(); }));
  };
  const auto run = [&](std::vector<double>* times) {
    times->push_back(Milliseconds([&] { net.Forward(); }));
  };
  for (int i = 0; i < 3; ++i) net.Forward();
  for (int i = 0; i < 9; ++i) run(&forward);
  for (int i = 1; i <= 7; ++i) {
    reshape(i, &fresh);
    net.Forward();
  }
  for (int i = 0; i < 9; ++i) {
    reshape(7 - i % 2, &seen);
    run(&again);
  }
  Rounds pyramid = MeasurePyramid(net);
  std::printf(
      "  \"%s\": {\"forward\": %.3f, \"new_size\": %.3f, \"seen_size\": %.4f, \"again\": %.3f, "
      "\"pyramid\": {\"first\": %.3f, \"second\": %.4f, \"forward\": %.3f}}",
      keep_all ? "keep_all" : "reuse", Median(forward), Median(fresh), Median(seen), Median(again),
      pyramid.first, pyramid.second, pyramid.forward);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: reshape_time NET.prototxt\n");
    return 1;
  }
  try {
    std::printf("{\n");
    Measure(argv[1], false);
    std::printf(",\n");
    Measure(argv[1], true);
    std::printf("\n}\n");
  } catch (const caffe::Error& error) {
    std::fprintf(stderr, "reshape_time: %s\n", error.what());
    return 1;
  }
}
