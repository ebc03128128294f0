# Hashes, sorting, regular expressions, closures and formats; prints what it made. Argument: rounds.
use strict;
use warnings;

my $rounds = shift // 1;
my $seed = 12345;
sub next_number { my $below = shift; $seed = ($seed * 1103515245 + 12345) % 2147483648; return int($seed / 65536) % $below; }
sub checksum { my $sum = 0; $sum = ($sum * 31 + ord $_) % 4294967291 for split //, shift; return $sum; }

for my $round (1 .. $rounds) {
    my (%count, %index, @words);
    for (1 .. 60000) {
        my $word = join '', map { chr(97 + next_number(12)) } 1 .. 2 + next_number(6);
        push @words, $word;
        $count{$word}++;
        push @{$index{substr $word, 0, 2}}, $word;
    }
    print "round $round: ", scalar(keys %count), " words\n";

    my @frequent = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
    print "frequent: @frequent[0 .. 9]\n";
    for my $prefix ((sort keys %index)[0 .. 9]) {
        my %seen;
        my @unique = sort grep { !$seen{$_}++ } @{$index{$prefix}};
        print "$prefix: ", scalar(@unique), ' ', checksum(join ',', @unique), "\n";
    }

    my $text = join ' ', @words;
    my $doubled = () = $text =~ /\b(\w)\w*\1\b/g;
    (my $turned = $text) =~ s/(\w)(\w+)/$2$1/g;
    $turned =~ s/(\w+) (\w+)/\u$2-\U$1/g;
    print "doubled: $doubled, turned: ", length $turned, ' ', checksum($turned), "\n";
    my @fields = split /[aeiou ]+/, $text;
    print 'fields: ', scalar(@fields), ' ', checksum(join '|', @fields[0 .. 4999]), "\n";

    delete @count{grep { $count{$_} == 1 } keys %count};
    my $left = join ',', map { "$_=$count{$_}" } sort keys %count;
    print 'left: ', scalar(keys %count), ' ', checksum($left), "\n";

    my @closures = map { my $number = $_; sub { return $number * shift } } 1 .. 20000;
    my $sum = 0;
    $sum += $closures[$_]->($_ % 7) for 0 .. $#closures;
    my $tree;
    for my $word (@words[0 .. 19999]) {
        my $place = \$tree;
        $place = \$$place->{$_} for split //, $word;
        $$place->{end} = length $word;
    }
    my ($nodes, @open) = (0, $tree);
    while (my $node = pop @open) { $nodes++; push @open, grep { ref } values %$node; }
    print "sum: $sum, nodes: $nodes, packed: ", checksum(pack 'w*', map { length } @words), "\n";
    my $grown = '';
    $grown .= sprintf '%05d:%-8s;', $_, $words[$_] for 0 .. 29999;
    print 'grown: ', length $grown, ' ', checksum($grown), "\n";
}
print "done\n";
