#include "caffe/core/quantity.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include "caffe/error.hpp"

namespace caffe {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kBandwidths[] = {{"B/s", 1},          {"KB/s", 1e3},       {"MB/s", 1e6},
                                {"GB/s", 1e9},       {"TB/s", 1e12},      {"Kb/s", 1e3 / 8},
                                {"Mb/s", 1e6 / 8},   {"Gb/s", 1e9 / 8},   {"Tb/s", 1e12 / 8},
                                {"Kbit/s", 1e3 / 8}, {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8},
                                {"Tbit/s", 1e12 / 8}};
constexpr Unit kDurations[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

// Nothing unless the text is a finite number and one of the units, with or without a space between.
std::optional<double> Parse(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  std::string_view name(rest, static_cast<size_t>(end - rest));
  while (name.starts_with(' ')) name.remove_prefix(1);
  for (const Unit& unit : units) {
    const double value = number * unit.factor;
    if (name == unit.name && std::isfinite(value)) return value;
  }
  return std::nullopt;
}

}  // namespace

double ParseBandwidth(const std::string& name, const std::string& text) {
  const std::optional<double> value = Parse(text, kBandwidths);
  Require(value && *value > 0, name, " is '", text,
          "'; give a positive number and a unit, such as 50GB/s (bytes) or 400Gb/s (bits)");
  return *value;
}

double ParseDuration(const std::string& name, const std::string& text) {
  const std::optional<double> value = Parse(text, kDurations);
  Require(value && *value >= 0, name, " is '", text,
          "'; give a number from 0 and a unit, such as 5us or 0.2ms");
  return *value;
}

}  // namespace caffe
