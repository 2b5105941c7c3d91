// "did you mean": the candidate that a mistyped name most likely stands for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// Where other frameworks use `name`, the candidate that is the same thing here ("InnerProduct" for
// "Linear"), or empty for what is not here (names_elsewhere.hpp). Else the candidate with the
// fewest edits (insert, delete, replace, swap neighbours; upper and lower case count as equal) from
// `name`; the earlier one of equals. When even the best one differs in more than a third of its
// letters, the shortest that begins with `name` ("Conv" for "Convolution"), if `name` has three
// letters or more; empty when none does.
CAFFE_EXPORT std::string NearestName(std::string_view name,
                                     const std::vector<std::string>& candidates);

}  // namespace caffe
