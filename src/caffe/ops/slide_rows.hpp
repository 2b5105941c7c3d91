// Rows that a layer keeps from one pass to the next: the last ones of each item.
#pragma once

#include <string>

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (before, cont, x) -> (after):  of each item, `after` has the last `length` rows of `before` with
// the `rows` rows of x after them; a row has `columns` numbers. Where cont, a number for each item,
// is 0, the rows of before count as 0; without cont none does. A row of x has `step` numbers, from
// which those from `offset` on are taken. Without x the new rows are 1.
//
// before and after have one type, and are usually the same state; length is at least rows.
struct SlideRows {
  static constexpr std::string_view kName = "SlideRows";
  static constexpr bool kInPlace = true;
  enum Input { kBefore, kCont, kX };
  static constexpr OperandSet kExactInputs = {kBefore, kCont};
  int64_t rows = 0, length = 0, columns = 0;
  int64_t step = 0, offset = 0;

  int64_t item() const { return length * columns; }
  std::string Attributes() const { return StrCat(rows, " new of ", length, " rows of ", columns); }
};

}  // namespace caffe::ops
