/* SPDX-License-Identifier: Apache-2.0
 * The expected texts are those of Python with ftfy 6.3; tests/interop/text_clean.py compares many more. */
#include "text/text_clean.h"

#include "check.h"

static const char *cleaned_bytes(const char *text, size_t n)
{
    static struct str out;
    struct cairn_error err = { 0 };
    out.len = 0;
    return text_clean(text, n, &out, &err) ? NULL : out.s;
}

static const char *cleaned(const char *text)
{
    return cleaned_bytes(text, strlen(text));
}

static void plain(void)
{
    CHECK_STR(cleaned(""), "");
    CHECK_STR(cleaned("a cat"), "a cat");
    CHECK_STR(cleaned(" \t\n\u3000\u2003"), "");
    CHECK_STR(cleaned("  a \r\n\u00a0 cat\u2028sits\xc2\x85 "), "a cat sits…");
    CHECK_STR(cleaned("日本語, ελληνικά, עברית"), "日本語, ελληνικά, עברית");
}

static void appends(void)
{
    CLEANUP(str_release) struct str out = { 0 };
    struct cairn_error err = { 0 };
    CHECK(!text_clean(" a ", 3, &out, &err) && !text_clean(" b ", 3, &out, &err));
    CHECK_STR(out.s, "ab");
}

static void references(void)
{
    CHECK_STR(cleaned("&lt;b&gt; &amp;amp;amp;eacute; &EACUTE; &SZLIG; &nTILDE;"), "<b> é É SS &nTILDE;");
    CHECK_STR(cleaned("&ampx &notit; &notin; &copyright &nosuch; & &;"), "&x ¬it; ∉ ©right &nosuch; & &;");
    CHECK_STR(cleaned("&#233;&#xE9;&#x80;&#0;&#xd800;&#x110000;&#59;&#1;&#x;&#;"),
              "éé€\ufffd\ufffd\ufffd;&#x;&#;");
    CHECK_STR(cleaned("&#99999999999999999999999999999;"), "\ufffd");
    /* A "<" says that the text is HTML: ftfy leaves this line and those after it alone, html.unescape not. */
    CHECK_STR(cleaned("&EACUTE;\n<\n&EACUTE; &eacute;"), "É < &EACUTE; é");
    CHECK_STR(cleaned("&CounterClockwiseContourIntegral;"), "∳");
}

/* A pass for each level would take hours. */
static void deep_references(void)
{
    enum { LEVELS = 250000 };
    CLEANUP(str_release) struct str text = { 0 };
    for (int latin = 0; latin < 2; latin++) {
        text.len = 0;
        str_add(&text, latin ? "é &" : "&");
        for (int i = 0; i < LEVELS; i++)
            str_add(&text, i % 2 ? "amp;" : "#38;");
        str_add(&text, "eacute; &amp;amp;lt;");
        CHECK_STR(cleaned_bytes(text.s, text.len), latin ? "é é <" : "é <");
    }
}

static void mojibake(void)
{
    CHECK_STR(cleaned("cafÃ© sÃ³ â€œyesâ€�"), "café só \"yes\ufffd");
    CHECK_STR(cleaned("voilÃ  le travail; Ã  la mode; Ã s vezes"), "voilà le travail; à la mode; às vezes");
    CHECK_STR(cleaned("Done.Â Next"), "Done. Next");
    CHECK_STR(cleaned("l’humanitÃ©"), "l'humanité");
    CHECK_STR(cleaned("ÃƒÂ©"), "é");
    CHECK_STR(cleaned("РџСЂРёРІРµС‚"), "Привет");
    CHECK_STR(cleaned("caf√© ‚Äî"), "café —");
    CHECK_STR(cleaned("ðŸ™‚ í\u00a0½í¸\xc2\x80"), "🙂 😀");
    CHECK_STR(cleaned("It\xc2\x92s \xc2\x93so\xc2\x94"), "It's \"so\"");
    /* These only look a little like it. */
    CHECK_STR(cleaned("IKEÅ Ã la carte, 5 Å, ±3 °C, «é»"), "IKEÅ Ã la carte, 5 Å, ±3 °C, «é»");
}

static void characters(void)
{
    CHECK_STR(cleaned("ﬂuﬃ Ĳ ŉ ＬＯＵＤ ﾊﾞ ￣"), "fluffi IJ 'n LOUD バ ̄");
    CHECK_STR(cleaned("“a” ‘b’ „c“"), "\"a\" 'b' \"c\"");
    CHECK_STR(cleaned("\033[31;1mred\033[0m \033[x \033[3"), "red [3");
    CHECK_STR(cleaned("a\x01\x7f"
                      "b\ufeff\ufffc\u206a"),
              "ab");
    CHECK_STR(cleaned("e\u0301 \u1100\u1161 \u212b o\u0308\u0323"), "é 가 Å ọ̈");
}

static void invalid_bytes(void)
{
    CHECK_STR(cleaned("a\xff"
                      "b \xe2\x82 \xf0\x9f\x98z \xed\xa0\x80"),
              "a\ufffdb \ufffd \ufffdz \ufffd\ufffd\ufffd");
    CHECK_STR(cleaned_bytes("a\0b\xc3", 4), "ab\ufffd");
}

int main(void)
{
    RUN(plain);
    RUN(appends);
    RUN(references);
    RUN(deep_references);
    RUN(mojibake);
    RUN(characters);
    RUN(invalid_bytes);
    return check_done();
}
