// fields: the members of a struct by their names in JSON, listed once for all that walk them: writer, reader, checks.
//
// The list is a function template beside the struct:
//
//   template <class Io, Of<Culprit> C>
//   void fields(Io& io, C& one) {
//     io("nodes", one.nodes), io("share", one.share), io.sparse("leaf", one.leaf);
//   }
//
// io(name, member): the object has it; one that is a std::optional is left out when it is empty.
// io.defaulted(name, member): always written, and where it is missing a read struct keeps what it has by default.
// io.sparse(name, member): left out when it is empty, 0 or false, which is then its default.
#pragma once

#include <concepts>
#include <type_traits>

namespace assay {

/// `T` is `Struct`, or const `Struct` for those that only look.
template <class T, class Struct>
concept Of = std::same_as<std::remove_const_t<T>, Struct>;

/// Calls `act(name, member)` for each member of the list.
template <class Act>
struct EachField {
  Act act;
  template <class T>
  void operator()(const char* name, T& member) {
    act(name, member);
  }
  template <class T>
  void defaulted(const char* name, T& member) {
    act(name, member);
  }
  template <class T>
  void sparse(const char* name, T& member) {
    act(name, member);
  }
};
template <class Act>
EachField(Act) -> EachField<Act>;

/// A struct with such a list.
template <class T>
concept Listed = requires(EachField<void (*)(const char*, ...)>& io, T& one) {
  fields(io, one);
};

}  // namespace assay
