// The secret of a user, for runs that are given none.
#pragma once

#include <string>

namespace caffe {

// The content of the file, which is made with random content where there is none: readable by its
// owner alone. Throws IoError where it cannot be, is another user's, or others can read it.
std::string SecretInFile(const std::string& path);

// CAFFE_SECRET; else what is in cortado/secret of $XDG_CACHE_HOME, or of $HOME/.cache. Throws
// what SecretInFile() does, and InvalidArgument where none of the three is set.
std::string SecretOfUser();

}  // namespace caffe
