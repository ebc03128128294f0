// What the compilers get to chew on: containers, ranges, and templates that are instantiated many times over.
// The program computes at compile time and at run time, compares, and prints; its output is the case's second check.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace {

template <std::size_t N, std::size_t M>
struct Ackermann {
    static constexpr std::size_t kValue = Ackermann<N - 1, Ackermann<N, M - 1>::kValue>::kValue;
};
template <std::size_t M>
struct Ackermann<0, M> {
    static constexpr std::size_t kValue = M + 1;
};
template <std::size_t N>
struct Ackermann<N, 0> {
    static constexpr std::size_t kValue = Ackermann<N - 1, 1>::kValue;
};

template <int Size>
constexpr auto primes() {
    std::array<int, Size> found{};
    int count = 0;
    for (int candidate = 2; count < Size; ++candidate) {
        bool prime = true;
        for (int i = 0; i < count && prime; ++i) prime = candidate % found[i] != 0;
        if (prime) found[count++] = candidate;
    }
    return found;
}

template <int Tag>
struct Matrix {
    std::vector<std::int64_t> cells = std::vector<std::int64_t>(16);

    Matrix() { std::iota(cells.begin(), cells.end(), Tag); }
    template <int Other>
    auto operator*(const Matrix<Other>& right) const {
        Matrix<(Tag * 3 + Other) % 64> product;
        for (int row = 0; row < 4; ++row) {
            for (int column = 0; column < 4; ++column) {
                std::int64_t sum = 0;
                for (int k = 0; k < 4; ++k) sum += cells[row * 4 + k] * right.cells[k * 4 + column];
                product.cells[row * 4 + column] = sum % 1000003;
            }
        }
        return product;
    }
};

template <int... Tags>
std::int64_t multiply_all(std::integer_sequence<int, Tags...>) {
    const auto product = (Matrix<1>{} * ... * Matrix<Tags>{});
    return std::accumulate(product.cells.begin(), product.cells.end(), std::int64_t{0});
}

template <int... Tags>
std::int64_t visit_all(std::integer_sequence<int, Tags...>) {
    using Any = std::variant<Matrix<Tags>...>;
    std::vector<Any> values;
    (values.push_back(Matrix<Tags>{}), ...);
    std::int64_t sum = 0;
    for (const Any& value : values) {
        sum += std::visit([](const auto& matrix) { return matrix.cells.front() * matrix.cells.back(); }, value);
    }
    return sum;
}

using Record = std::tuple<std::string, int, std::shared_ptr<std::vector<std::string>>>;

std::map<std::string, Record> parse(const std::string& text) {
    std::map<std::string, Record> records;
    std::istringstream lines(text);
    for (std::string name, number, colon, list; lines >> name >> number >> colon >> list;) {
        auto words = std::make_shared<std::vector<std::string>>();
        std::istringstream items(list);
        for (std::string word; std::getline(items, word, ',');) words->push_back(word);
        records[name + number] = {name, std::stoi(number), words};
    }
    return records;
}

std::string make_text(int lines) {
    std::ostringstream text;
    for (int i = 0; i < lines; ++i) {
        text << std::string(1, static_cast<char>('a' + i % 26)) << "x " << i * 7 << " : ";
        for (int word = 0; word <= i % 9; ++word) text << 'w' << word * i << ',';
        text << '\n';
    }
    return text.str();
}

}  // namespace

int main() {
    std::cout << "ackermann " << Ackermann<2, 60>::kValue << '\n';
    constexpr auto kPrimes = primes<300>();
    static_assert(kPrimes[299] == 1987);
    std::cout << "primes " << std::accumulate(kPrimes.begin(), kPrimes.end(), 0) << '\n';
    std::cout << "product " << multiply_all(std::make_integer_sequence<int, 12>{}) << '\n';
    std::cout << "visited " << visit_all(std::make_integer_sequence<int, 16>{}) << '\n';

    const auto records = parse(make_text(3000));
    std::unordered_map<std::string, std::size_t> words;
    for (const auto& [key, record] : records) {
        for (const auto& word : *std::get<2>(record)) words[word] += key.size() + std::get<1>(record) % 5;
    }
    std::vector<std::pair<std::string, std::size_t>> sorted(words.begin(), words.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return std::tie(b.second, a.first) < std::tie(a.second, b.first); });
    std::cout << "records " << records.size() << ", words " << sorted.size() << '\n';
    for (int i = 0; i < 16; ++i) std::cout << sorted[i].first << ' ' << sorted[i].second << '\n';

    std::array<std::size_t, 4> sums{};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        threads.emplace_back([&sums, i] {
            for (const auto& [key, record] : parse(make_text(500 + 100 * static_cast<int>(i)))) {
                sums[i] += std::hash<int>{}(std::get<1>(record)) + key.size() + std::get<2>(record)->size();
            }
        });
    }
    for (auto& thread : threads) thread.join();
    for (const std::size_t sum : sums) std::cout << "thread " << sum << '\n';
    std::cout << "done\n";
}
