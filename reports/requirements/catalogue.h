// catalogue: the numbered demands of a published document, and their answers; assay.catalogue/1.
#pragma once

#include <cstddef>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/plan/plan.h"
#include "probes/core/error.h"
#include "probes/core/words.h"

namespace assay::requirements {

/// Requirements of a plan that answer a row: one by its id, or all that judge a metric of a probe or demand a condition
/// of it.
struct Answer {
  std::string requirement;  ///< id; empty: by the members below
  std::string probe, metric, condition;
  std::optional<Value> equals;             ///< of the condition: only requirements with this value
  Values parameters;                       ///< only requirements with these of the probe
  std::optional<plan::JudgedScope> scope;  ///< only requirements on subjects of this kind
  std::size_t least_nodes = 1;             ///< only requirements with a step on so many nodes

  /// "throughput of cuda_gemm", for people.
  [[nodiscard]] std::string words() const;
};

/// Why no run can answer a row.
enum class Outside { organisational, contract, not_measurable };

constexpr auto words_of(Outside) { return names_as_words<Outside>(); }

/// One demand, paraphrased. It has answers, all of which it needs, or `outside`.
struct Row {
  std::string id, section, text;
  std::string address;  ///< of its own page; empty: the catalogue's
  std::vector<Answer> answers;
  std::optional<Outside> outside;
  std::string why;       ///< of `outside`
  std::size_t line = 0;  ///< its first line in the file, from 1
};

/// A whole catalogue.
struct Catalogue {
  std::string where;  ///< its file, or "catalogue NAME"
  std::string name, title;
  int revision = 1;
  std::string document, address, date;  ///< of the paraphrased text, and the day of reading
  std::string note;                     ///< parts of the document that it leaves out
  std::vector<Row> rows;
  std::string sha256;  ///< of the file
};

/// Reads a catalogue; `where` names it in errors. Refused, each with its line: documents against catalogue.schema.json,
/// an id twice, a row with answers and `outside` or with neither, an answer that names too much or too little.
std::expected<Catalogue, InputError> read_catalogue(std::string_view text, const std::string& where);

/// The error of a name that neither this version nor `plan` has: a probe, a metric or condition of it, or a requirement
/// that is of no built-in profile either. With its line and the nearest match.
std::optional<InputError> check_names(const Catalogue& catalogue, const plan::Plan& plan);

/// The catalogues that are built in, name to text.
const std::map<std::string, std::string_view>& embedded_catalogues();

/// The built-in catalogue of this name, or the one in this file (a name with a slash, or that ends in .json).
std::expected<Catalogue, InputError> catalogue_named(const std::string& name);

}  // namespace assay::requirements
