"""Word lists that several corpora share; their order decides which split may use a word."""

PEOPLE = """
nurse pilot doctor lawyer teacher student farmer singer dancer writer painter soldier sailor driver waiter banker
artist actor author editor baker guard judge priest scientist engineer gardener neighbor visitor tourist coach player
manager director minister senator captain officer hunter thief merchant reporter detective butler tailor miner
""".split()

PLACES = """
garden kitchen library museum station park harbor market church school office theater hotel hospital forest village
castle airport cafe stadium
""".split()

ACTS = """
thank call help visit follow warn greet trust blame praise admire hire push watch phone insult invite attack accuse
miss remember ignore rescue kiss hug question punish chase mock interview annoy surprise defend summon fear support
""".split()

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split() + "Easter Christmas".split()

TRAITS = """
old young tall short rich poor famous clever lazy polite shy brave quiet angry happy proud nervous gentle honest
friendly
""".split()
