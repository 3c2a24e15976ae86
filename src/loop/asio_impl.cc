// The one file that compiles Asio itself (BOOST_ASIO_SEPARATE_COMPILATION): everyone else sees
// declarations.
#include <boost/asio/impl/src.hpp>
