// OperandSet: a set of an op's operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace caffe {

// A set of operands, by index.
class OperandSet {
 public:
  constexpr OperandSet() = default;
  constexpr OperandSet(std::initializer_list<int> operands) {
    for (const int operand : operands) bits_ |= uint64_t{1} << operand;
  }
  // All operands, however many there are.
  static constexpr OperandSet All() {
    OperandSet all;
    all.bits_ = ~uint64_t{0};
    return all;
  }
  // All() also contains operands beyond the 64th.
  constexpr bool contains(size_t operand) const {
    return (bits_ >> (operand < 63 ? operand : 63)) & 1u;
  }
  // All operands that are not in the set.
  constexpr OperandSet Others() const {
    OperandSet others;
    others.bits_ = ~bits_;
    return others;
  }
  constexpr bool overlaps(OperandSet others) const { return (bits_ & others.bits_) != 0; }
  constexpr void insert(size_t operand) { bits_ |= uint64_t{1} << operand; }
  constexpr void insert(OperandSet others) { bits_ |= others.bits_; }

 private:
  uint64_t bits_ = 0;
};

}  // namespace caffe
