#include "caffe/io/with_position.hpp"

#include <algorithm>

namespace caffe {
namespace {

// The chain goes to the end of the first line: further lines show a part of a file.
std::string WithChain(std::string message, const std::string& chain) {
  return message.insert(std::min(message.find('\n'), message.size()), chain);
}

}  // namespace

void RethrowAt(const ErrorPlace& place) {
  WithContext(place.place, [&] {
    try {
      throw;
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(WithChain(error.what(), place.chain));
    } catch (const Unsupported& error) {
      throw Unsupported(WithChain(error.what(), place.chain));
    } catch (const IoError& error) {
      throw IoError(WithChain(error.what(), place.chain));
    } catch (const DeviceError& error) {
      throw DeviceError(WithChain(error.what(), place.chain));
    }
  });
  throw;  // with a type that WithContext preserves
}

}  // namespace caffe
