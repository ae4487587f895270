"""A BiLSTM over the words of a sentence, and a conditional random field over its scores (Huang et al. 2015)."""

from thaw.heads.bilstm import BiLstmHead
from thaw.heads.crf import CrfHead


class BiLstmCrfHead(CrfHead, BiLstmHead):
    """`BiLstmHead` as a chain's emissions: the tagger of Lample et al. 2016, and of Peters et al. 2019 for NER."""
