"""Where a server's character sets differ from Python's codecs (charsets.py). Written by
`python -m tests.layers.wire.charset_survey`, from MariaDB 10.11.19, gb18030 from MySQL 8.0.15.

`code=point`, both in hexadecimal, or `code*count=point` for consecutive codes with consecutive characters; `?`
for codes without a character.
"""

from typing import Final

DIFFERENCES: Final[dict[str, str]] = {
    "armscii8": (
        "a1=2741 a2=a7 a3=589 a4=29 a5=28 a6=bb a7=ab a8=2014 a9=2e aa=55d ab*2=2c ad=55f ae=2026 af=55c "
        "b0=55b b1=55e b2=531 b3=561 b4=532 b5=562 b6=533 b7=563 b8=534 b9=564 ba=535 bb=565 bc=536 "
        "bd=566 be=537 bf=567 c0=538 c1=568 c2=539 c3=569 c4=53a c5=56a c6=53b c7=56b c8=53c c9=56c "
        "ca=53d cb=56d cc=53e cd=56e ce=53f cf=56f d0=540 d1=570 d2=541 d3=571 d4=542 d5=572 d6=543 "
        "d7=573 d8=544 d9=574 da=545 db=575 dc=546 dd=576 de=547 df=577 e0=548 e1=578 e2=549 e3=579 "
        "e4=54a e5=57a e6=54b e7=57b e8=54c e9=57c ea=54d eb=57d ec=54e ed=57e ee=54f ef=57f f0=550 "
        "f1=580 f2=551 f3=581 f4=552 f5=582 f6=553 f7=583 f8=554 f9=584 fa=555 fb=585 fc=556 fd=586 "
        "fe=2019 ff=27"
    ),
    "big5": (
        "a15a=fffd a1c3=fffd a1c5=fffd a1fe=fffd a240=fffd a2cc=fffd a2ce=fffd f9d6=7881 f9d7=92b9 "
        "f9d8=88cf f9d9=58bb f9da=6052 f9db=7ca7 f9dc=5afa"
    ),
    "cp1256": ("8a=? 8f=? 98=? 9a=? 9f=? aa=? c0=? ff=?"),
    "cp866": ("fc=207f fd=b2"),
    "dec8": ("a4=? a6=? a8=a4 ac*4=? b4=? b8=? be=? d0=? d7=152 dd=178 de=? f0=? f7=153 fd=ff fe*2=?"),
    "eucjpms": (
        "a1c1=ff5e a1c2=2225 a1dd=ff0d a1f1*2=ffe0 a2cc=ffe2 ada1*20=2460 adb5*10=2160 adc0=3349 "
        "adc1=3314 adc2=3322 adc3=334d adc4=3318 adc5=3327 adc6=3303 adc7=3336 adc8=3351 adc9=3357 "
        "adca=330d adcb=3326 adcc=3323 adcd=332b adce=334a adcf=333b add0*3=339c add3*2=338e add5=33c4 "
        "add6=33a1 addf=337b ade0=301d ade1=301f ade2=2116 ade3=33cd ade4=2121 ade5*5=32a4 adea*2=3231 "
        "adec=3239 aded=337e adee=337d adef=337c adf0=2252 adf1=2261 adf2=222b adf3=222e adf4=2211 "
        "adf5=221a adf6=22a5 adf7=2220 adf8=221f adf9=22bf adfa=2235 adfb*2=2229 f5a1*940=e000 "
        "8fa2b7=ff5e 8fa2c3=ffe4 8ff3f3*10=2170 8ff3fd*10=2160 8ff4a9=ff07 8ff4aa=ff02 8ff4ab=3231 "
        "8ff4ac=2116 8ff4ad=2121 8ff4ae=70bb 8ff4af=4efc 8ff4b0=50f4 8ff4b1=51ec 8ff4b2=5307 8ff4b3=5324 "
        "8ff4b4=fa0e 8ff4b5=548a 8ff4b6=5759 8ff4b7*2=fa0f 8ff4b9=589e 8ff4ba=5bec 8ff4bb=5cf5 "
        "8ff4bc=5d53 8ff4bd=fa11 8ff4be=5fb7 8ff4bf=6085 8ff4c0=6120 8ff4c1=654e 8ff4c2=663b 8ff4c3=6665 "
        "8ff4c4=fa12 8ff4c5=f929 8ff4c6=6801 8ff4c7*2=fa13 8ff4c9=6a6b 8ff4ca=6ae2 8ff4cb=6df8 "
        "8ff4cc=6df2 8ff4cd=7028 8ff4ce*2=fa15 8ff4d0=7501 8ff4d1=7682 8ff4d2=769e 8ff4d3=fa17 "
        "8ff4d4=7930 8ff4d5*4=fa18 8ff4d9=7ae7 8ff4da*2=fa1c 8ff4dc=7da0 8ff4dd=7dd6 8ff4de=fa1e "
        "8ff4df=8362 8ff4e0=fa1f 8ff4e1=85b0 8ff4e2*2=fa20 8ff4e4=8807 8ff4e5=fa22 8ff4e6=8b7f "
        "8ff4e7=8cf4 8ff4e8=8d76 8ff4e9*3=fa23 8ff4ec=90de 8ff4ed=fa26 8ff4ee=9115 8ff4ef*2=fa27 "
        "8ff4f1=9592 8ff4f2=f9dc 8ff4f3=fa29 8ff4f4=973b 8ff4f5=974d 8ff4f6=9751 8ff4f7*3=fa2a "
        "8ff4fa=999e 8ff4fb=9ad9 8ff4fc=9b72 8ff4fd=fa2d 8ff4fe=9ed1 8ff5a1*940=e3ac"
    ),
    "gb18030": ("a8bc=1e3f 8135f437=e7c7"),
    "geostd8": (
        "80=20ac 81=? 82=201a 83=? 84=201e 85=2026 86*2=2020 88=? 89=2030 8a=? 8b=2039 8c*5=? 91*2=2018 "
        "93*2=201c 95=2022 96*2=2013 98*3=? 9b=203a 9c*4=? c0*7=10d0 c7=10f1 c8*6=10d7 ce=10f2 cf*6=10dd "
        "d5=10f3 d6*12=10e3 e2=10f4 e3*2=10ef e5=10f5 e6*23=? fd=2116 fe*2=?"
    ),
    "greek": ("a1=2bd a2=2bc a4*2=? aa=?"),
    "hebrew": ("af=203e"),
    "keybcs2": (
        "80=10c 83=10f 85=10e 86=164 87=10d 88=11b 89=11a 8a=139 8b=cd 8c=13e 8d=13a 8f=c1 91=17e 92=17d "
        "95=d3 96=16f 97=da 98=fd 9b=160 9c=13d 9d=dd 9e=158 9f=165 a4=148 a5=147 a6=16e a7=d4 a8=161 "
        "a9=159 aa=155 ab=154 ac=bc ad=a1 b5*2=2561 b7=2556 b8=2555 bd=255c be=255b c6*2=255e cf*2=2567 "
        "d1*2=2564 d3=2559 d4=2558 d5*2=2552 d7=256b d8=256a dd=258c de=2590 e0=3b1 e2=393 e3=3c0 e4=3a3 "
        "e5=3c3 e6=b5 e7=3c4 e8=3a6 e9=398 ea=3a9 eb=3b4 ec=221e ed=3c6 ee=3b5 ef=2229 f0=2261 f1=b1 "
        "f2=2265 f3=2264 f4*2=2320 f7=2248 f9=2219 fa=b7 fb=221a fc=207f fd=b2"
    ),
    "koi8u": ("95=2022"),
    "latin1": ("81=81 8d=8d 8f*2=8f 9d=9d"),
    "sjis": ("815f=5c"),
    "swe7": ("40=c9 5b=c4 5c=d6 5d=c5 5e=dc 60=e9 7b=e4 7c=f6 7d=e5 7e=fc 7f=?"),
    "tis620": ("a0=fffd db=fffd dc=fffd dd=fffd de=fffd fc=fffd fd=fffd fe=fffd ff=fffd"),
    "ujis": ("a1c0=5c f5a1*940=e000 8ff5a1*940=e3ac"),
}
